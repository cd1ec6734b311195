"""Compiles kernels by the code generators of three vendors' GPUs, without any of their devices.

    python -m tests.vendors.rendering FOLDER     # kernels of every class, as on an H100
    python -m tests.vendors show FILE.cl         # registers, spills, stack, loads of each kernel
    python -m tests.vendors check FOLDER ...     # every program that is not verified yet
    python -m tests.vendors verify FOLDER ...    # all of them; writes down which they were
    python -m tests.vendors table FOLDER         # writes table.txt

`programs` says what a program is and which are the same, `toolchain` finds the compilers, `nvidia`,
`amd` and `intel` each run one vendor's, `compiling` runs them all, `bars` says what a class of
kernels must not exceed, `verified` keeps which programs were compiled before. With
``CLFUSE_TEST_KERNELS=FOLDER`` pytest writes all programs there that it builds for a GPU's schedule.
"""
