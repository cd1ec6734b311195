"""The benchmark: programs against NumPy, other compilers and hand-written OpenCL; called by
``python -m clfuse bench``.

`programs` says what is computed, `contenders`, `peers` and `limit` by whom, `measure` times them in
one process side by side, `recording` measures what recording and planning cost, `table` writes the
results, `command` reads the command line.
"""
