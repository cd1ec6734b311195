"""The choice for a snapshot: NumPy on the host or kernels, built now or later.

Three rules decide, in this order. `cost`: whether a launch would take longer than NumPy. `tiering`:
whether a structure has earned its kernels. `feedback`: whether NumPy was quicker before. Results
are right whatever is chosen.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Protocol

from clfuse.config import settings
from clfuse.dataclass import mutable
from clfuse.ir.snapshot import Snapshot

from . import allowance, cost, feedback, tiering, warm_start
from .allowance import begin as begin_program
from .allowance import done as done_at_call
from .allowance import take_back as note_kernels
from .cost import fills_cores
from .feedback import known as known_works
from .feedback import of_kernels as works_of_kernels
from .tiering import Tier, note_built, note_return

if TYPE_CHECKING:
    from clfuse.runtime.devices.device import Device

__all__ = [
    "INTERPRET",
    "MEANWHILE",
    "SMALL",
    "Choice",
    "Verdict",
    "aside",
    "begin_program",
    "choose",
    "count_earned",
    "done_at_call",
    "fills_cores",
    "forecast",
    "is_left",
    "judge",
    "known_works",
    "note_built",
    "note_kernels",
    "note_return",
    "reset",
    "wait_for_kernels",
    "why",
    "works_of_kernels",
]


_is_aside: Final = [False]
"""Whether what is evaluated now is nothing that the program does over and over."""


class Choice(enum.Enum):
    """What becomes of a snapshot."""

    INTERPRET = "NumPy calculates it, because it is small"
    INTERPRET_SPARING = "NumPy calculates it, with as few arrays at a time as possible"
    BEHIND = "a plan is made in the background, and NumPy calculates meanwhile"
    BUILD = "a plan is made, and judged"
    RUN = "its plan runs"


INTERPRET = (Choice.INTERPRET, Choice.INTERPRET_SPARING)
"""The choices for which NumPy calculates."""


@mutable
class Verdict:
    """What was decided of a plan, kept with it.

    Attributes
    ----------
    circumstances : (int, int) or None
        What the decision depended on besides the structure, when it was last made.
    is_left : bool
        NumPy is quicker, kernels or not.
    is_trial : bool
        Its arguments lie on the host because NumPy calculated while its kernels were built. Where
        they do so once more, it is judged again, as one that copies them every time.
    """

    circumstances: tuple[int, int] | None = None
    is_left: bool = False
    is_trial: bool = False


class Judged(Protocol):
    """A plan, as far as it is judged."""

    uses: int
    verdict: Verdict

    def launch_count(self) -> int: ...

    def is_inline(self, device: Device) -> bool: ...


def choose(
    snapshot: Snapshot, device: Device, plan: Judged | None, *, behind: bool = False
) -> tuple[Choice, bool]:
    """What becomes of a snapshot, of which there is a plan or none; whether one may be made in the
    background, `behind` NumPy's back.

    The second is whether nothing in it would have been recorded if its arguments had been on the
    host, or will be from here on: what else waits to be computed may be small too. With
    `Choice.BUILD` and `Choice.BEHIND` it is whether the snapshot is small, for `judge`.
    """
    if _is_aside[0]:
        return Choice.INTERPRET_SPARING, False
    is_piece = allowance.was_cut()
    if plan is None or plan.verdict.circumstances != cost.circumstances(snapshot):
        is_small = cost.is_small(snapshot, device)
        earns_kernels = is_small and cost.is_of_kernels(snapshot)
        tier = Tier.NOW
        if earns_kernels and plan is None:
            tier = tiering.tier_of(snapshot, device, behind=behind, is_piece=is_piece)
            earns_kernels = tier is not Tier.WAIT
        if is_small and not earns_kernels:
            return Choice.INTERPRET, feedback.small(snapshot)
        if plan is None:
            if not is_small:
                feedback.large(snapshot, device)
                tier = tiering.tier_of(snapshot, device, behind=behind, is_piece=is_piece)
                if tier is Tier.WAIT:
                    feedback.wait(snapshot)
                    return Choice.INTERPRET_SPARING, allowance.is_given()
            return Choice.BEHIND if tier is Tier.BEHIND else Choice.BUILD, is_small
        return judge(snapshot, device, plan, is_small=is_small)
    if plan.verdict.is_left:
        return Choice.INTERPRET_SPARING, feedback.left_to_numpy(snapshot)
    if plan.uses == 1:
        if plan.verdict.is_trial:
            judged = judge(snapshot, device, plan, is_small=cost.is_small(snapshot, device))
            if judged[0] is not Choice.RUN:
                return judged
        feedback.keeps_kernels(snapshot)
    return Choice.RUN, False


@contextmanager
def aside() -> Iterator[None]:
    """Leave to NumPy what is evaluated within, and note nothing of it."""
    _is_aside[0] = True
    try:
        yield
    finally:
        _is_aside[0] = False


def judge(
    snapshot: Snapshot, device: Device, plan: Judged, *, is_small: bool, is_trial: bool = False
) -> tuple[Choice, bool]:
    """The same of a plan that is new, or whose circumstances have changed; `is_trial` is kept with
    the verdict."""
    plan.verdict.circumstances = cost.circumstances(snapshot)
    plan.verdict.is_trial = is_trial
    plan.verdict.is_left = not is_small and feedback.is_quicker(
        snapshot,
        device,
        plan.launch_count(),
        inline=plan.is_inline(device),
        is_copied=not is_trial,
    )
    if plan.verdict.is_left:
        return Choice.INTERPRET_SPARING, feedback.left_to_numpy(snapshot)
    return Choice.RUN, False


SMALL: Final = "it is small (CLFUSE_HOST_US)"
LEFT: Final = "it is quicker than kernels would be"
WAITING: Final = "it has not earned kernels yet (CLFUSE_BUILD_AFTER_MS)"
MEANWHILE: Final = "its kernels are being built"


def why(way: Choice, plan: Judged | None) -> str:
    """Why NumPy calculates what has become a choice of `INTERPRET`, in words."""
    if way is Choice.INTERPRET:
        return SMALL
    return LEFT if plan is not None and plan.verdict.is_left else WAITING


def forecast(snapshot: Snapshot, device: Device, *, is_planned: bool) -> tuple[bool, bool]:
    """What `choose` would say, with nothing noted: whether NumPy computes the snapshot because it
    is small, and whether because its kernels have to wait."""
    is_small = cost.is_small(snapshot, device)
    of_kernels = is_small and cost.is_of_kernels(snapshot)
    waits = (
        (not is_small or of_kernels) and not is_planned and tiering.would_wait(snapshot, device)
    )
    return is_small and not of_kernels, waits


def is_left(snapshot: Snapshot, device: Device) -> bool:
    """Whether NumPy computes a snapshot that nobody has asked for yet: because it is small, all of
    it was left to NumPy before, or an allowance is enough for it."""
    if cost.is_small(snapshot, device):
        return True
    if feedback.is_eager(snapshot):
        return cost.cost_ns(snapshot, device, cost.ENDLESS_NS) is not None
    return allowance.covers(snapshot) and (
        cost.cost_ns(snapshot, device, allowance.left_ns()) is not None
    )


def wait_for_kernels(snapshot: Snapshot) -> None:
    """Note that NumPy has computed a snapshot because its kernels are being built: until they are
    there it works at the call."""
    if not cost.is_of_kernels(snapshot):
        allowance.lend(snapshot, settings.build_after_ms * 1e6)


def reset() -> None:
    """Know nothing of what was evaluated before."""
    tiering.forget()
    feedback.forget()


def count_earned() -> int:
    """How many structures were worth their kernels in some run, as far as the user's cache says."""
    warm_start.forget()
    return len(warm_start.known())
