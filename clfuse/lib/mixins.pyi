# Written by `python -m tests.stubs` with NumPy 2.4.
# ruff: noqa
"""NumPy's ``numpy.lib.mixins``, with clfuse's arrays."""

from numpy.lib.mixins import *
from numpy.lib.mixins import NDArrayOperatorsMixin as NDArrayOperatorsMixin
