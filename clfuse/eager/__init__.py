"""Eager operations: NumPy computes them at the call, on small arrays that lie on the host.

The rules by which a call is taken, and what is done then, are in the compiled part
(``_core/eager_*.pxi``). Here are the tables of functions that it reads, and what is rare: arrays
that have to be brought to the host first, because a loop reads or writes their parts. Without the
compiled part small arrays are recorded as all others are, and `interpreter` computes them.

This module is the door of the package: nobody outside of it imports another one of its modules.
"""

from .bringing import get_by_arrays, set_in_place
from .fronts import before, connect, settled

__all__ = ["before", "connect", "get_by_arrays", "set_in_place", "settled"]
