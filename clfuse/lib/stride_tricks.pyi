# Written by `python -m tests.stubs` with NumPy 2.4.
# ruff: noqa
"""NumPy's ``numpy.lib.stride_tricks``, with clfuse's arrays."""

from numpy.lib.stride_tricks import *
from numpy.lib.stride_tricks import as_strided as as_strided
from numpy.lib.stride_tricks import sliding_window_view as sliding_window_view
