"""Imports NumPy so that the threads of its BLAS do not keep cores busy that a device computes on.

The threads of an OpenBLAS spin for 2**26 clock cycles when a product is done, in case there is
another: for 25 ms the kernels that come next have a core less. OpenBLAS reads the variable when the
library is loaded, and nothing else sets this time: so this module comes before all that imports
NumPy. Measured on two cores: after a product of 400 x 400 the threads take 33 ms of a core without
the variable, nothing with it. Products one after another take no longer.

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
