"""The benchmark: programs against NumPy, other compilers and hand-written OpenCL.

`programs` has the programs; `contenders`, `peers` and `limit` have what runs them; `measure` times
them in one process side by side; `recording` measures what recording and planning cost; `table`
writes the results; `command` reads the command line.
"""
