"""Which operations NumPy has in the end, though they were recorded; `evaluate` notes them, and
`api.present` calculates their like at the call from then on.

What came from the host as a whole may begin a chain that a kernel does together, so it is recorded,
and all that depends on it. Where the program then turns out to be small, NumPy calculates it
anyway: `A = np.array(a) * .1; x = A @ x` over and over cost ten times what it costs at the call. So
what `smallness` has left to NumPy twice is not recorded a third time, unless kernels were made for
something of the kind: then nothing is known.

An operation is known by its work alone, in additions: its elements times the weight of its row.
Results have NumPy's bits either way, but for what is recorded as something else: a product of two
vectors is a sum then.
"""

from __future__ import annotations

from typing import Final

from .graph.ir import Kind
from .graph.snapshot import Snapshot
from .interpret import size_of
from .runtime.buffers import AS_A_WHOLE, HostBuffer

__all__ = ["forget", "given_kernels", "known", "left_to_numpy"]

MOST_KNOWN: Final = 1024
"""Entries of each set here; arrays of ever other sizes would fill them."""

known: Final[set[float]] = set()
"""Work of operations that NumPy had to do, though arrays that came as a whole were recorded; the
compiled part looks at this very set."""

_met: Final[set[float]] = set()
"""The same, once."""

_of_kernels: Final[set[float]] = set()
"""Work of the first operations on arrays that came as a whole, for which there were kernels."""


def left_to_numpy(snapshot: Snapshot) -> None:
    """Note that NumPy calculates a snapshot because it is small."""
    for work in _begun(snapshot):
        if work not in _of_kernels:
            _limited(known if work in _met else _met).add(work)


def given_kernels(snapshot: Snapshot) -> None:
    """Note that kernels are made for a snapshot."""
    for work in _begun(snapshot):
        _limited(_of_kernels).add(work)
        known.discard(work)


def forget() -> None:
    """Know nothing."""
    for each in (known, _met, _of_kernels):
        each.clear()


def _begun(snapshot: Snapshot) -> set[float]:
    """The work of the element-wise operations that read arrays that came as a whole."""
    whole = {
        number
        for number, buffer in enumerate(snapshot.buffers)
        if type(buffer) is HostBuffer and buffer.use == AS_A_WHOLE
    }
    if not whole:
        return set()
    found: set[float] = set()
    seen: set[int] = set()
    for position, item in enumerate(snapshot.items):
        op = item[0]
        if op is None:
            if item[2] in whole:
                seen.add(position)
        elif not seen.isdisjoint(item[3:]):
            if op.kind is Kind.VIEW or op.name == "cast":
                seen.add(position)
            elif op.kind is Kind.MAP:
                found.add(float(op.weight * size_of(item[1])))
    return found


def _limited(works: set[float]) -> set[float]:
    if len(works) >= MOST_KNOWN:
        works.clear()
    return works
