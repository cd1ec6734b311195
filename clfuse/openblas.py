"""NumPy's BLAS must not keep the cores busy that a device computes on; `clfuse` imports this before
anything that imports NumPy.

The threads of an OpenBLAS spin for 2**26 clock cycles when a product is done, in case there is
another: 25 ms in which the kernels that come next have a core less. How long is read from a
variable of the environment when the library is loaded, and by nothing else. Measured on two cores:
after a product of 400 x 400 it takes 33 ms of a core without the variable, nothing with it, and
products one after another take no longer.

Source: https://github.com/OpenMathLib/OpenBLAS/blob/develop/USAGE.md
"""

from __future__ import annotations

import os
import sys
from typing import Final

VARIABLE: Final = "OPENBLAS_THREAD_TIMEOUT"

TIMEOUT: Final = "18"
"""Binary logarithm of clock cycles: 0.1 ms, as long as some products in a row need their threads to
stay awake."""

if "numpy" not in sys.modules and VARIABLE not in os.environ:
    os.environ[VARIABLE] = TIMEOUT
    try:
        import numpy  # noqa: F401
    finally:
        del os.environ[VARIABLE]  # processes that this one starts are none of our business
