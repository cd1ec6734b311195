"""Differential fuzzing: random NumPy programs, run under NumPy and under the module under test.

`generate` draws a program (data: a list of steps over named variables) while it runs it under
NumPy, `check` runs it under both and compares dtype, shape, values, aliasing and errors, `shrink`
makes a failing program small, and `Program.script` prints it as a NumPy script.
``python -m tests.fuzz`` is the command; tests/device/test_fuzz.py runs a few hundred in CI.
"""
