"""Compiles kernels by the code generators of three vendors' GPUs, on a machine that has none of them.

    python -m tests.vendors show FILE.cl         # registers, spills, stack, local memory, loads of each kernel
    python -m tests.vendors check FOLDER         # every program in a folder that is not verified yet
    python -m tests.vendors verify FOLDER        # all of them, and write down which they were

`programs` says what a program is and which are the same, `toolchain` finds the compilers,
`nvidia`, `amd` and `intel` each run one vendor's, `compiling` runs them all, `bars` says what a
class of kernels must not exceed, `verified` keeps which programs were compiled before. Programs come
from tests: with ``CLFUSE_TEST_KERNELS=FOLDER`` each program that pytest has built is written there.
"""
