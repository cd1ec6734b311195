"""Tiering: NumPy computes a structure until the work so far is worth building its kernels.

Building takes a tenth of a second and more, and a program may evaluate a structure only once. So
NumPy computes it until the time that kernels may have saved equals the time of building
(``CLFUSE_BUILD_AFTER_MS``, and longer for many operations, which take longer to plan). This costs
at most twice the time of the better choice. What NumPy computes before kernels would have been
launched does not count. A structure that takes NumPy longer than that in one
evaluation has its kernels at once. A structure that comes a third time, with few others in between,
is a loop, and its kernels are built. Without the limit on the others a program that goes through
many structures in turn (``V[:k] @ w``, over and over) would build the kernels of them all.

Opening a device takes as long as building. Where none is open yet, NumPy computes until all it has
done, for whatever structures, has taken that long: programs of some milliseconds never open one.

Large arrays have their kernels at once, as long as the program comes back to the plans that were
made: a program that measures itself calls everything a second time. After several plans that did
not come back, as in restarted GMRES with ``V[:k] @ w``, large arrays wait like others. So do
operations that are many and small, though they write to a large array: NumPy takes much less for
them than planning would.

Kernels that were earned are made in the background (`Tier.BEHIND`), and NumPy calculates until they
are there; those of what takes NumPy as long as the compiler are waited for. As they are too late
for the evaluation that asked for them, one that takes much less than the compiler has them made
when its structure comes again (`SPECULATED`).

While a structure waits, NumPy works at the call, without recording (`allowance`): then structures
that come twice have earned their kernels. Where no kernels were made yet it waits longer, for
opening a device and for importing what plans. What is evaluated first after an allowance may be the
rest of a round of which NumPy has done a part: it is left to NumPy and forgotten.

Kernels that an earlier run has built are on disk, and load in some milliseconds (`warm_start`).
Such a structure has its kernels at once; where its plan was pushed out, at its second evaluation,
if that comes soon. So has a structure on which NumPy worked half as long as building takes in that
run.

All that is not large has to pay for itself as a whole (`_pays`), and so has what is many
operations (`MANY`): a program whose rounds are each time others would plan and build more than it
computes. Nobody waits for kernels of many exponentials or sines, which take a compiler .03 s each,
where NumPy takes less (`_waited_ns`).
"""

from __future__ import annotations

import atexit
import enum
import math
from typing import TYPE_CHECKING, Any, Final

from clfuse.config import settings
from clfuse.counters import counters
from clfuse.interpreter.prepared import size_of
from clfuse.ir.fingerprint import digest
from clfuse.ir.snapshot import Snapshot
from clfuse.runtime.memory.buffers import HostBuffer
from clfuse.target.costs import COSTS

from . import allowance, warm_start
from .cost import budget_ns, cost_ns, is_of_kernels, launch_ns, unlike_functions, unlike_operations

if TYPE_CHECKING:
    from clfuse.runtime.devices.device import Device

__all__ = ["Tier", "forget", "note_built", "note_return", "tier_of", "would_wait"]

LOOP_NODE: Final = 400
"""Nanoseconds of work for an operation, per microsecond of ``CLFUSE_HOST_US``, from which on
kernels are so much faster that a loop must not wait: 20 us, an addition of 50,000 elements."""

LOOP_EVALUATIONS: Final = 2
"""Evaluations that show a loop."""

LOOP_STRUCTURES: Final = 8
"""A structure is in a loop of few if at most so many that are not small were evaluated since it
came last. As many kernels take a second to build."""

EARNED_STRUCTURES: Final = 128
"""What an earlier run found worth its kernels has them early if at most so many others were
evaluated since it came last. `evaluate` keeps twice as many plans: where each element or row is a
structure of its own, and all come in turn, they would push each other out."""

LARGE: Final = 100
"""Work of one evaluation, in ``CLFUSE_HOST_US``, from which on it is large, unless it is so much by
its operations alone: 5 ms."""

LARGE_SIZE: Final = 1 << 17
"""Elements of an array from which on an evaluation is large. On a device with memory of its own the
array would travel."""

TRUSTED_PLANS: Final = 4
"""Plans that a program may have made beyond those that it came back to, and is still believed to
come back: as many kernels take a second to build. That it came back to one of them many times says
nothing of the others: in ``z = z[active]`` every round has another size."""

STRUCTURES_KEPT: Final = 1 << 14
"""Entries of `_waiting`, of about 200 bytes."""


class Tier(enum.Enum):
    """What a structure without kernels has earned."""

    WAIT = "nothing yet"
    BEHIND = "kernels, but NumPy calculates until they are there"
    NOW = "kernels, which are waited for"


WORTH: Final = 1.5
"""What NumPy must have taken for a structure, in units of opening a device and planning, before the
next run has kernels for it at once."""


PLANNED_WITH: Final = 2
"""Times what planning takes at least: finding tiles and variants, and loading programs, take as
long again where many operations have many results."""

CREDIT_NS: Final = 5e8
"""What planning and building may take before a program has computed anything."""

SPECULATED: Final = 4
"""Parts of what a program takes the compiler: an evaluation of less does not have kernels made in
the background when its structure comes for the first time."""

WAITED: Final = 2
"""Times ``CLFUSE_BUILD_AFTER_MS`` that an evaluation takes NumPy which waits for the compiler, if
that takes as long: until then it is too late for kernels, and the next evaluation has them."""

MANY: Final = 128
"""Operations of a structure, unlike each other, from which on one evaluation, however large, does
not have its kernels at once if they take longer than NumPy does: a picture of which each ray is
another branch."""

PAID_SHARE: Final = 0.25
"""Of what NumPy has computed, and of what kernels have saved, the part that planning and building
may take."""


class _Waiting:
    """What NumPy has done for a structure.

    Attributes
    ----------
    spent_ns : float
        Of it, what kernels may have saved; infinite once they were built.
    share : float
        As `_share`.
    evaluations : int
    name : str
        In every process.
    patience_ns : float
        What NumPy may take before it has kernels, but for opening a device.
    turn : int
        Which evaluation, of those that were not small, was its last.
    used_ns : float
        `allowance.used_ns` then.
    is_paid : bool
        Its plan is in `_paid_ns`.
    """

    __slots__ = (
        "evaluations", "is_paid", "name", "patience_ns", "share", "spent_ns", "turn", "used_ns",
    )  # fmt: skip

    def __init__(self) -> None:
        self.is_paid = False
        self.patience_ns = self.spent_ns = self.used_ns = 0.0
        self.share = 1.0
        self.evaluations = 0
        self.name = ""
        self.turn = 0


_waiting: dict[int, _Waiting] = {}
"""Hash of a structure that has no plan -> what NumPy has done for it."""

_turns = [0]
"""Evaluations that waited, of all structures."""

_total_ns = [0.0]
"""What NumPy has taken for all structures that waited, beside allowances."""

_paid_ns = [0.0]
"""What the plans that were made, and their kernels, are thought to have taken."""

_gain = [0.0, 0]
"""What they save by an evaluation of each, in nanoseconds, all together; how many they are."""

_returns_before = [0]
"""Evaluations by plans that were there before the first of them was made."""

_once = [0]
"""Plans that were made, and that the program has not come back to."""

_named: Final[list[Any]] = [None, ""]
"""The structure that was named last, and its name."""

_NOT_MET: Final = _Waiting()


def tier_of(
    snapshot: Snapshot, device: Device, *, behind: bool, is_piece: bool = False
) -> Tier:
    """What a snapshot has earned for which no kernels are built yet; whether kernels may be made
    `behind` NumPy's back, and whether it may be a piece of what comes as a whole the next time.
    With `Tier.WAIT`, NumPy calculates it, which is noted.

    It depends on what the program has evaluated and on what earlier runs have built, and in no way
    on clocks. Within one run an expression may change its last bits once, where a kernel adds in
    another order than NumPy, or has another sine: ``CLFUSE_BUILD_AFTER_MS=0`` prevents that.
    """
    allowance.note_turn(_turn())
    key = _key(snapshot)
    if is_piece and key not in _waiting and _is_for_numpy(snapshot, device):
        return Tier.WAIT
    tier, cost, share = _tier(snapshot, device, _waiting.get(key, _NOT_MET), behind)
    if len(_waiting) >= STRUCTURES_KEPT:
        _waiting.clear()
    found = _waiting.setdefault(key, _Waiting())
    if tier is not Tier.WAIT:
        if not found.is_paid:
            found.is_paid = True
            _paid_ns[0] += _price_ns(snapshot, device, found)
            _gain[0] += cost * _share(snapshot, device, cost) if cost else 0.0
            _gain[1] += 1
        allowance.note_earned()
        found.evaluations = found.evaluations or 1
        found.turn = _turn()
        return tier
    _turns[0] += 1
    found.turn = _turn()
    found.share = share
    found.spent_ns += share * (cost + _used_since(found))
    _total_ns[0] += cost
    found.used_ns = allowance.used_ns()
    found.evaluations += 1
    found.name = found.name or _name(snapshot)
    found.patience_ns = _patience_ns(snapshot, device) - _opening_ns(device)
    allowance.note_wait()
    is_sooner = found.evaluations == 1 and _tier(snapshot, device, found, behind)[0] is not tier
    if not is_of_kernels(snapshot) and not is_sooner:
        allowance.give(snapshot, _patience_ns(snapshot, device) - found.spent_ns)
    return tier


def would_wait(snapshot: Snapshot, device: Device) -> bool:
    """Whether `tier_of` would say so, with nothing noted."""
    found = _waiting.get(_key(snapshot), _NOT_MET)
    return _tier(snapshot, device, found, False)[0] is Tier.WAIT


def note_built(snapshot: Snapshot, device: Device) -> None:
    """Note that a structure has kernels: if NumPy has worked on it before, they are worth it at
    its first evaluation the next time."""
    _once[0] += 1
    found = _waiting.get(_key(snapshot))
    if found is not None and 0 < found.spent_ns < math.inf:
        found.spent_ns = math.inf
        warm_start.note(found.name)


def note_return() -> None:
    """Note that a plan is used for the second time."""
    _once[0] -= 1


def forget() -> None:
    """Wait anew from here on: plans are forgotten too."""
    _waiting.clear()
    _once[0] = 0
    _total_ns[0] = _paid_ns[0] = 0.0
    _gain[:] = 0.0, 0
    _returns_before[0] = counters["plans_reused"]
    allowance.forget()


@atexit.register
def note_half_earned() -> None:
    """Note also what would have earned its kernels in a run of twice the length: the next run, if
    it is of this length, spends the other half. What each run has to do anew, it must be worth by
    itself, and more: kernels take some time, too."""
    # Without anything that waits the settings are not asked for: a value that is not taken was
    # said before.
    if _waiting and settings.build_after_ms:
        # Allowances are used by what was evaluated last, as far as anybody knows.
        last = max(_waiting.values(), key=lambda found: found.turn)
        last.spent_ns += last.share * _used_since(last)
        building = settings.build_after_ms * 1e6
        opening = 0.0 if counters["plans_made"] else COSTS.opening_ns
        for found in _waiting.values():
            anew = opening + found.patience_ns - building
            if building / 2 + WORTH * anew <= found.spent_ns < math.inf:
                warm_start.note(found.name)


def _tier(
    snapshot: Snapshot, device: Device, found: _Waiting, behind: bool
) -> tuple[Tier, float, float]:
    """What a structure has earned, what one more evaluation takes NumPy, and of that the share that
    kernels may save. `found` is what it has done for the structure."""
    if not settings.build_after_ms:
        return Tier.NOW, 0.0, 1.0
    costs = device.costs
    patience = _patience_ns(snapshot, device)
    smallish = budget_ns(snapshot, settings.host_us * LOOP_NODE)
    is_trusted = _once[0] < TRUSTED_PLANS
    most = patience
    if is_trusted or not device.shares_memory:
        if snapshot.fact("size", lambda: _largest(snapshot)) > LARGE_SIZE:
            if not device.shares_memory:
                return Tier.NOW, 0.0, 1.0
            most = min(most, settings.host_us * LOOP_NODE * len(snapshot.nodes))
        else:
            most = min(most, max(settings.host_us * LARGE * 1000.0, smallish))
    if device.may_wait:
        most = max(most, _opening_ns(device) - _done_ns())
    price = _waited_ns(snapshot, device, found) if device.shares_memory else 0.0
    earned = Tier.BEHIND if behind and device.shares_memory else Tier.NOW
    compiling = max(costs.program_ns, price)
    # Who sets CLFUSE_BUILD_AFTER_MS to little has a compiler that takes little.
    waited = max(patience, price, min(costs.program_ns, WAITED * settings.build_after_ms * 1e6))
    cost = cost_ns(snapshot, device, waited)
    if cost is None:
        return Tier.NOW, 0.0, 1.0
    if cost > max(patience, price) and (
        earned is Tier.NOW or warm_start.is_known(found.name or _name(snapshot))
    ):
        return Tier.NOW, 0.0, 1.0
    is_guess = earned is Tier.BEHIND and _is_speculation(snapshot, found, cost, compiling)
    if cost > max(most, price):
        return Tier.WAIT if is_guess else earned, cost, 1.0
    is_smallish = cost <= smallish
    call_ns = costs.interpreted_ns if is_of_kernels(snapshot) else costs.call_ns
    cost += call_ns * len(snapshot.nodes)
    share = _share(snapshot, device, cost)
    if not share:
        return Tier.WAIT, cost, share
    if not _pays(snapshot, device, found):
        return Tier.WAIT, cost, share
    spent = found.spent_ns + share * _used_since(found)
    if spent + share * cost > patience:
        return Tier.WAIT if is_guess else earned, cost, 1.0
    turn = _turn()
    others = turn - found.turn
    is_first = not found.evaluations or (found.evaluations == 1 and others <= EARNED_STRUCTURES)
    if is_first and warm_start.is_known(_name(snapshot)):
        return earned, cost, 1.0
    if allowance.is_watching(turn) and found.evaluations and others <= allowance.MOST_TURNS:
        return earned, cost, 1.0
    is_near = others <= LOOP_STRUCTURES
    is_worth = not is_smallish or _reads_kernels(snapshot)
    is_open = _done_ns() >= _opening_ns(device)
    if found.evaluations >= LOOP_EVALUATIONS and is_near and is_worth and is_open:
        return earned, cost, 1.0
    return Tier.WAIT, cost, share


def _is_for_numpy(snapshot: Snapshot, device: Device) -> bool:
    """Whether NumPy takes less for it than building kernels does that no run has built."""
    return (
        not is_of_kernels(snapshot)
        and cost_ns(snapshot, device, _patience_ns(snapshot, device)) is not None
        and not warm_start.is_known(_name(snapshot))
    )


def _is_speculation(snapshot: Snapshot, found: _Waiting, cost: float, compiling: float) -> bool:
    """Whether nobody knows of a structure that it will come again, and its kernels are more work
    than the evaluation that would ask for them."""
    if found.evaluations or SPECULATED * cost >= compiling:
        return False
    return not warm_start.is_known(_name(snapshot))


def _pays(snapshot: Snapshot, device: Device, found: _Waiting) -> bool:
    """Whether the program may plan and build this structure, too, by what it has computed."""
    returns = counters["plans_reused"] - _returns_before[0]
    budget = CREDIT_NS + PAID_SHARE * (_done_ns() + returns * _gain[0] / max(_gain[1], 1))
    return not device.shares_memory or _paid_ns[0] + _price_ns(snapshot, device, found) <= budget


def _price_ns(snapshot: Snapshot, device: Device, found: _Waiting) -> float:
    """What planning takes, and building where no earlier run has."""
    each = PLANNED_WITH * device.costs.planning_ns
    if not warm_start.is_known(found.name or _name(snapshot)):
        each += device.costs.building_ns
    return each * unlike_operations(snapshot)


def _waited_ns(snapshot: Snapshot, device: Device, found: _Waiting) -> float:
    """What one evaluation, however large, waits for at least if it has its kernels at once: where
    operations are many, or such as take a compiler long."""
    price = 0.0
    if len(snapshot.nodes) > MANY < unlike_operations(snapshot):
        price = _price_ns(snapshot, device, found)
    functions = unlike_functions(snapshot)
    if functions and not warm_start.is_known(found.name or _name(snapshot)):
        price += device.costs.function_building_ns * functions
    return price


def _share(snapshot: Snapshot, device: Device, cost: float) -> float:
    """What kernels may save of the time that NumPy takes, beside what they save of any work."""
    if is_of_kernels(snapshot):
        return 1.0
    return max(1.0 - launch_ns(snapshot, device) / cost, 0.0)


def _patience_ns(snapshot: Snapshot, device: Device) -> float:
    """What NumPy may take for a structure before it has kernels."""
    costs = device.costs
    planning = costs.planning_ns * len(snapshot.nodes)
    return settings.build_after_ms * 1e6 + planning + _opening_ns(device)


def _opening_ns(device: Device) -> float:
    """What the first launch takes beside its kernels."""
    return 0.0 if counters["plans_made"] or device.is_open else device.costs.opening_ns


def _done_ns() -> float:
    """What NumPy has done for all structures."""
    return _total_ns[0] + allowance.used_ns()


def _used_since(found: _Waiting) -> float:
    """What NumPy has done by allowances since a structure was evaluated."""
    return allowance.used_ns() - found.used_ns if found.evaluations else 0.0


def _reads_kernels(snapshot: Snapshot) -> bool:
    """Whether something that it reads was left on the device by kernels: of a loop in which both
    take turns each brings its results to the other."""
    return any(type(buffer) is not HostBuffer for buffer in snapshot.buffers)


def _turn() -> int:
    return _turns[0] + counters["plans_reused"] + counters["plans_made"]


def _largest(snapshot: Snapshot) -> int:
    """Elements of its largest array."""
    return max([size_of(node.shape) for node in snapshot.nodes])


def _key(snapshot: Snapshot) -> int:
    return snapshot.fact("key", lambda: hash(tuple(snapshot.items)))


def _name(snapshot: Snapshot) -> str:
    # Not the device's own name: a program that is small does not look for one.
    about = settings.device, settings.planning
    key = _key(snapshot), about
    if _named[0] != key:
        _named[:] = key, digest(snapshot, about)
    name: str = _named[1]
    return name
