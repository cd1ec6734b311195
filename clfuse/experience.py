"""Which operations NumPy has in the end, though they were recorded; `evaluate` notes them, and
`api.present` calculates their like at the call from then on.

What came from the host as a whole may begin a chain that a kernel does together, so it is recorded,
and all that depends on it. Where the program then turns out to be small, NumPy calculates it
anyway: `A = np.array(a) * .1; x = A @ x` over and over cost ten times what it costs at the call. So
what `smallness` has left to NumPy twice is not recorded a third time, unless kernels were made for
something of the kind: then nothing is known.

Programs that take turns are left to NumPy, too: what it has calculated at the call is read by
kernels round after round, and each has to be copied for them. Where that and the launches take
longer than NumPy would, it has the rest of the round as well.

An operation is known by its work alone, in additions: its elements times the weight of its row.
Results have NumPy's bits either way, but for what is recorded as something else: a product of two
vectors is a sum then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .graph.ir import Kind
from .graph.snapshot import Snapshot
from .interpret import VIEWED, size_of
from .patience import CALL_NS
from .runtime.buffers import AS_A_WHOLE, HostBuffer
from .smallness import cost_ns

if TYPE_CHECKING:
    from .runtime.device import Device

__all__ = ["forget", "given_kernels", "known", "left_to_numpy", "takes_turns", "took_turns"]

MOST_KNOWN: Final = 1024
"""Entries of each set here; arrays of ever other sizes would fill them."""

LEAST_COPIES: Final = 8
"""Arrays of NumPy's that kernels read, from which on a program takes turns: fewer are its input."""

LAUNCH_NS: Final = 60_000
"""Processor time of a launch among others on a CPU, on all cores: 77 to 90 us on PoCL, of which
some 10 are its 4,000 elements; more on Intel's runtime."""

COPY_NS: Final = 2_000
"""The same of a small array's copy for a kernel."""

KERNEL_SHARE: Final = 0.25
"""What kernels take of the time that NumPy takes for the elements."""

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


def takes_turns(snapshot: Snapshot, device: Device, launches: int) -> bool:
    """Whether NumPy is quicker than so many launches, which read what it has calculated."""
    copies = sum(
        [type(buffer) is HostBuffer and buffer.memory is None for buffer in snapshot.buffers]
    )
    if copies < LEAST_COPIES or copies <= launches or device.traits.kind != "cpu":
        return False
    kernels = launches * LAUNCH_NS + copies * COPY_NS
    calls = sum(
        [item[0] is not None and item[0].kind not in VIEWED for item in snapshot.items]
    )
    most = (kernels - CALL_NS * calls) / (1 - KERNEL_SHARE)
    return most > 0 and cost_ns(snapshot, device, most) is not None


def took_turns(snapshot: Snapshot) -> None:
    """Note that NumPy calculates such a snapshot: it has all of its kind at the call."""
    for item in snapshot.items:
        op = item[0]
        if op is not None and op.kind is Kind.MAP:
            _limited(known).add(float(op.weight * size_of(item[1])))


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
