"""SciPy's ufuncs that the op tables have (``scipy.special.erf``), as ufuncs of ours.

Their calls are recorded as those of NumPy's ufuncs are.
"""

from __future__ import annotations

import sys
from typing import Final

import numpy as np

from clfuse.dispatch.registry import BY_NUMPY
from clfuse.functions.math.ufunc import ufunc

NAMES: Final = frozenset(["erf", "erfc"])
"""Rows of the op tables that are called as they are in ``scipy.special``. Of a million doubles they
take .04 to .25 of SciPy's time; gamma and gammaln, left to SciPy, .4 of it on PoCL and 3 times as
long on Intel's runtime."""


def of_scipy(function: np.ufunc) -> ufunc | None:
    """Ours for a ufunc of SciPy's; None for all others."""
    name = getattr(function, "__name__", "")
    special = sys.modules.get("scipy.special")
    if name not in NAMES or getattr(special, name, None) is not function:
        return None
    ours: ufunc = BY_NUMPY.setdefault(function, ufunc(function))
    return ours
