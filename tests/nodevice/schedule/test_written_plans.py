"""Plans that are written down launch by launch: what each kind of launch reads and writes, which of
that is a hazard, which memory values share."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from clfuse.schedule.kinds import COMPACT, EXPAND, MAP, REDUCE, SCAN, TILES, KernelKind
from clfuse.schedule.lower.emission import ValueTable
from clfuse.schedule.memory.buffers import reads_of, slots_of, writes_of
from clfuse.schedule.memory.hazards import MAX_NBYTES, Hazards, place_of
from clfuse.schedule.memory.war_reads import MOST_MOVED, Moved, clashing, moved_before
from clfuse.schedule.records import (
    Access,
    Accumulator,
    Copy,
    Kernel,
    Launch,
    LibraryCall,
    Load,
    Operand,
    Prefix,
    Schedule,
    Selection,
    SortPass,
    Store,
    UserLaunch,
    Value,
    Written,
)
from clfuse.schedule.rewrite.write_regions import Region
from tests.support.recording import FLOAT64

N = 10
WHOLE = Access(0, (1,))


class Wrong(Exception):
    """What the hazards say."""


def fail(message: str) -> None:
    raise Wrong(message)


def load(value: int, access: Access = WHOLE, **more: Any) -> Load:
    return Load(1, value, FLOAT64, access, **more)


def store(value: int, access: Access = WHOLE) -> Store:
    return Store(1, FLOAT64, value, FLOAT64, access)


def mapped(
    read: int, write: int, start: int = 0, end: int = 0, *, count: int = N, **more: Any
) -> Kernel:
    """Loads elements from `start` on, and stores them from `end` on."""
    body, stores = [load(read, Access(start, (1,)))], [store(write, Access(end, (1,)))]
    return Kernel(MAP, (count,), body, stores, **more)


def called(read: int, write: int, epilogue: Kernel | None = None) -> LibraryCall:
    operand = Operand(read, FLOAT64, (N,), 0, (1,))
    return LibraryCall("sort", [operand], write, (N,), FLOAT64, None, epilogue=epilogue)


def sorted_by(reads: tuple[int, ...], writes: tuple[int, ...]) -> SortPass:
    return SortPass("count", called(0, 0), 1, N, 1, N, 8, 0, "", reads, writes)


def launched(read: int, write: int, table: int | None = None) -> UserLaunch:
    """A user's kernel that reads one array and writes to another."""
    spec = SimpleNamespace(slots=[SimpleNamespace(part=-1), SimpleNamespace(part=0)], name="mine")
    tables = [] if table is None else [table]
    return UserLaunch(spec, None, [read, write], [read, None], [], tables)  # type: ignore[arg-type]


def folded(write: int, epilogue_read: int | None = None, **partials: int) -> Kernel:
    total = Accumulator(2, "add", 1, FLOAT64, **partials)
    epilogue = [] if epilogue_read is None else [load(epilogue_read)]
    return Kernel(REDUCE, (N, 3), [load(OTHER, Access(0, (0, 0)))], [], reduced=1,
                  accumulators=[total], epilogue=epilogue, results=[store(write)])


def selecting(kind: KernelKind, read: int, write: int, *, packed: int | None = None) -> Kernel:
    found = None if packed is None else load(packed)
    starts = OTHER if packed is not None else read
    return Kernel(kind, (N,), [load(OTHER)], [store(write)], selection=Selection(1, starts, found))


OLD, NEW, OTHER, RESULT = range(4)
"""An array; what is written over it; another array; memory that holds nothing at first."""


def four_values(nbytes: int = 8 * N) -> Schedule:
    values = [Value(nbytes, 0, buffer=0), Value(nbytes, 1, slot=0), Value(nbytes, 2, buffer=1),
              Value(nbytes, 3, slot=1)]
    return Schedule([], values, [nbytes, nbytes], {}, [], [], reuses={0: 0})


READERS: dict[str, Callable[[int], Launch]] = {
    "copy": lambda read: Copy(read, RESULT, 8 * N),
    "pass of a sort": lambda read: sorted_by((OTHER, read), (RESULT,)),
    "array of a user's kernel": lambda read: launched(read, RESULT),
    "table of a user's kernel": lambda read: launched(OTHER, RESULT, read),
    "library call": lambda read: called(read, RESULT),
    "epilogue of a library call":
        lambda read: called(OTHER, 9, Kernel(MAP, (N,), [load(9), load(read)], [store(RESULT)])),
    "load": lambda read: mapped(read, RESULT),
    "gather": lambda read: Kernel(MAP, (N,), [load(read, position=0)], [store(RESULT)]),
    "load after a fold": lambda read: folded(RESULT, read),
    "pieces of a scan": lambda read: Kernel(
        SCAN, (N,), [load(OTHER), Prefix(2, "add", 1, FLOAT64, read)], [store(RESULT)]),
    "starts of a selection": lambda read: selecting(COMPACT, read, RESULT),
    "packed elements": lambda read: selecting(EXPAND, OTHER, RESULT, packed=read),
    "load of a later phase":
        lambda read: mapped(OTHER, RESULT, then=[Kernel(MAP, (N,), [load(read)], [])]),
}

WRITERS: dict[str, Callable[[int], Launch]] = {
    "copy": lambda write: Copy(OTHER, write, 8 * N),
    "pass of a sort": lambda write: sorted_by((OTHER,), (RESULT, write)),
    "user's kernel": lambda write: launched(OTHER, write),
    "library call": lambda write: called(OTHER, write),
    "epilogue of a library call":
        lambda write: called(OTHER, 9, Kernel(MAP, (N,), [load(9)], [store(write)])),
    "store": lambda write: mapped(OTHER, write),
    "result of a fold": lambda write: folded(write),
    "folds of pieces": lambda write: folded(RESULT, partial=write),
    "positions in pieces": lambda write: folded(RESULT, partial_position=write),
    "selected elements": lambda write: selecting(COMPACT, OTHER, write),
    "store of a later phase":
        lambda write: mapped(OTHER, RESULT, then=[Kernel(MAP, (N,), [], [store(write)])]),
}


def with_call_results(schedule: Schedule) -> Schedule:
    """Values 4 to 9, of which calls with an epilogue name the last: it lies nowhere."""
    schedule.values += [Value(8 * N) for _ in range(6)]
    return schedule


@pytest.mark.parametrize("launch", READERS.values(), ids=READERS)
def test_a_read_of_what_was_written_over_is_a_hazard(launch: Callable[[int], Launch]) -> None:
    for read, is_there in ((OLD, False), (NEW, True)):
        hazards = Hazards(with_call_results(four_values()), fail)
        hazards.run(Copy(OTHER, RESULT, 8 * N), "here")  # selections count in what is there
        hazards.run(Copy(OTHER, NEW, 8 * N), "here")
        if is_there:
            hazards.run(launch(read), "here")
            hazards.check_whole(RESULT, "the result")
        else:
            with pytest.raises(Wrong, match=r"here reads value 0, but .* holds"):
                hazards.run(launch(read), "here")


@pytest.mark.parametrize("launch", WRITERS.values(), ids=WRITERS)
def test_what_is_overwritten_is_gone_and_the_new_is_there(
    launch: Callable[[int], Launch]
) -> None:
    hazards = Hazards(with_call_results(four_values()), fail)
    with pytest.raises(Wrong, match="before reads value 1, but"):
        hazards.check_whole(NEW, "before")
    hazards.check_whole(OLD, "before")
    hazards.run(launch(NEW), "here")
    hazards.check_whole(NEW, "after")
    with pytest.raises(Wrong, match="after reads value 0, but"):
        hazards.check_whole(OLD, "after")


@pytest.mark.parametrize("launch", READERS.values(), ids=READERS)
def test_memory_is_kept_for_everything_that_a_launch_reads(launch: Callable[[int], Launch]) -> None:
    reads = dict(reads_of(launch(NEW)))
    assert NEW in reads
    assert OLD not in reads
    assert writes_of(launch(NEW)) == [RESULT]


@pytest.mark.parametrize("launch", WRITERS.values(), ids=WRITERS)
def test_memory_is_given_to_everything_that_a_launch_writes(
    launch: Callable[[int], Launch]
) -> None:
    assert set(writes_of(launch(NEW))) - {RESULT} == {NEW}
    assert {value for value, _ in reads_of(launch(NEW))} == {OTHER}


def test_elements_are_known_of_plain_loads_alone() -> None:
    def accesses(launch: Launch) -> list[Access | None]:
        return [access for value, access in reads_of(launch) if value == NEW]

    assert accesses(mapped(NEW, RESULT)) == [WHOLE]
    assert accesses(READERS["gather"](NEW)) == [None]
    assert accesses(READERS["load after a fold"](NEW)) == [None]
    assert accesses(READERS["copy"](NEW)) == [None]


def test_empty_arrays_hold_nothing_that_could_be_wrong() -> None:
    schedule = four_values(0)
    hazards = Hazards(schedule, fail)
    hazards.run(mapped(RESULT, NEW, count=0), "here")
    hazards.check_whole(RESULT, "after")
    large = four_values()
    hazards = Hazards(large, fail)
    empty = Kernel(MAP, (0,), [load(RESULT)], [store(NEW)])
    hazards.run(empty, "here")
    hazards.check_whole(OLD, "after")  # no element of it was written over


SIZES = pytest.mark.parametrize("nbytes", [80, MAX_NBYTES, MAX_NBYTES + 8])


@SIZES
def test_an_update_in_place_shows_the_old_elements_outside(nbytes: int) -> None:
    count = nbytes // 8

    def updated(old: int = OLD, itemsize: int = 8) -> Hazards:
        schedule = four_values(nbytes)
        schedule.values[NEW].update = Written(old, (((3,), Access(2, (1,))),), itemsize)
        schedule.values.append(Value(8 * N, 4, buffer=2))
        hazards = Hazards(schedule, fail)
        hazards.run(mapped(4, NEW, 0, 2, count=3), "here")
        return hazards

    updated().check_whole(NEW, "after")
    for start, length, is_right in ((5, count - 5, True), (0, 2, True), (4, 2, False),
                                    (1, 2, False)):
        reads_old = mapped(OLD, RESULT, start, 0, count=length)
        if is_right:
            updated().run(reads_old, "there")
        else:
            with pytest.raises(Wrong, match="there reads value 0"):
                updated().run(reads_old, "there")
    gather = Kernel(MAP, (N,), [load(OLD, position=0)], [store(RESULT)])
    with pytest.raises(Wrong, match="there reads value 0"):
        updated().run(gather, "there")


@SIZES
def test_what_an_update_is_not_of_is_no_old_element_of_it(nbytes: int) -> None:
    schedule = four_values(nbytes)
    schedule.values[NEW].update = Written(OTHER, (((3,), Access(2, (1,))),), 8)
    hazards = Hazards(schedule, fail)
    hazards.run(mapped(OTHER, NEW, 0, 2, count=3), "here")
    with pytest.raises(Wrong, match=r"there reads value 0|after reads value 1"):
        hazards.run(mapped(OLD, RESULT, 6, 0, count=2), "there")
        hazards.check_whole(NEW, "after")


def test_updates_of_updates_show_what_none_of_them_wrote() -> None:
    schedule = four_values()
    schedule.values[NEW].update = Written(OLD, (((2,), Access(0, (1,))),), 8)
    schedule.values.append(Value(80, 4, slot=2,
                                 update=Written(NEW, (((2,), Access(4, (1,))),), 8)))
    schedule.slots.append(80)
    schedule.reuses[2] = 0
    hazards = Hazards(schedule, fail)
    hazards.run(mapped(OTHER, NEW, 0, 0, count=2), "first")
    hazards.run(mapped(OTHER, 4, 0, 4, count=2), "second")
    hazards.check_whole(4, "after")
    hazards.run(mapped(OLD, RESULT, 2, 0, count=2), "between")
    hazards.run(mapped(NEW, RESULT, 0, 0, count=4), "at the front")
    with pytest.raises(Wrong, match="reads value 1"):
        hazards.run(mapped(NEW, RESULT, 3, 0, count=2), "at the end")


def test_a_kernel_may_read_only_the_elements_that_it_writes() -> None:
    Hazards(four_values(), fail).run(mapped(OLD, NEW, 1, 1, count=5), "here")
    Hazards(four_values(), fail).run(mapped(OLD, NEW, 5, 0, count=5), "here")
    with pytest.raises(Wrong, match=r"touches value 0 where it writes value 1.* first$"):
        Hazards(four_values(), fail).run(mapped(OLD, NEW, 1, 0, count=5), "here")


def test_tiles_may_not_read_even_the_elements_that_they_write() -> None:
    kernel = mapped(OLD, NEW, 1, 1, count=5)
    kernel.kind = TILES
    with pytest.raises(Wrong, match="touches value 0 where it writes value 1"):
        Hazards(four_values(), fail).run(kernel, "here")
    # One tile may be in its second phase before another one has begun with the first.
    later = Kernel(TILES, (N,), [load(OTHER)], [store(NEW)],
                   then=[Kernel(TILES, (N,), [load(NEW)], [])])
    with pytest.raises(Wrong, match="touches value 1 where it writes value 1"):
        Hazards(four_values(), fail).run(later, "here")


def test_phases_write_what_the_same_work_item_has_read() -> None:
    def phases(start: int) -> Kernel:
        return Kernel(MAP, (5,), [load(OLD, Access(start, (1,)))], [],
                      then=[Kernel(MAP, (5,), [], [store(NEW)])])

    Hazards(four_values(), fail).run(phases(0), "here")
    with pytest.raises(Wrong, match="first, in another phase or to another value"):
        Hazards(four_values(), fail).run(phases(1), "here")


def test_what_a_phase_has_written_the_next_one_reads() -> None:
    kernel = Kernel(MAP, (N,), [load(OTHER)], [store(NEW)],
                    then=[Kernel(MAP, (N,), [load(NEW)], [store(RESULT)])])
    Hazards(four_values(), fail).run(kernel, "here")


def test_two_stores_to_one_place_may_not_touch() -> None:
    def storing(value: int, start: int) -> Kernel:
        return Kernel(MAP, (4,), [load(OTHER)], [store(NEW), store(value, Access(start, (1,)))])

    def schedule() -> Schedule:
        known = four_values()
        known.values.append(Value(80, 4, slot=0))  # in the bytes of NEW
        return known

    with pytest.raises(Wrong, match=r"touches value 1 where it writes value 4.*to another value"):
        Hazards(schedule(), fail).run(storing(4, 3), "here")
    Hazards(schedule(), fail).run(storing(4, 4), "here")
    Hazards(schedule(), fail).run(storing(NEW, 3), "here")  # of one value: it says what is last


def test_sorts_and_library_calls_say_what_they_read_and_write() -> None:
    Hazards(four_values(), fail).run(sorted_by((OLD,), (NEW,)), "here")
    Hazards(four_values(), fail).run(called(OLD, NEW), "here")
    schedule = with_call_results(four_values())
    after = Kernel(MAP, (5,), [load(9), load(OTHER)], [store(NEW)])
    with pytest.raises(Wrong, match="touches value 0 where it writes value 1"):
        Hazards(schedule, fail).run(called(OLD, 9, after), "here")  # a kernel of ours


def test_a_users_kernel_may_read_only_what_it_writes_over() -> None:
    spec: Any = SimpleNamespace(slots=[SimpleNamespace(part=0)], name="mine")
    in_place = UserLaunch(spec, None, [NEW], [OLD], [], [])  # type: ignore[arg-type]
    Hazards(four_values(), fail).run(in_place, "here")
    assert (reads_of(in_place), writes_of(in_place)) == ([(OLD, None)], [NEW])
    with pytest.raises(Wrong, match="touches value 0 where it writes value 1"):
        Hazards(four_values(), fail).run(launched(OLD, NEW), "here")


def test_sisters_in_boxes_run_side_by_side() -> None:
    def sisters(start: int, end: int) -> Kernel:
        """The second reads from `start` on, the first writes from `end` on."""
        second = mapped(OLD, RESULT, start, count=N, where=(((5, 8),),))
        return Kernel(MAP, (N,), [load(OTHER)], [store(NEW, Access(end, (1,)))],
                      where=(((0, 3),),), then=[second])

    Hazards(four_values(), fail).run(sisters(0, 0), "here")  # reads 5 to 8, writes 0 to 3
    with pytest.raises(Wrong, match="touches value 0 where it writes value 1"):
        Hazards(four_values(), fail).run(sisters(0, 4), "here")  # writes 4 to 7
    with pytest.raises(Wrong, match="touches value 0 where it writes value 1"):
        Hazards(four_values(), fail).run(sisters(-4, 0), "here")  # reads 1 to 4
    hazards = Hazards(four_values(), fail)
    hazards.run(sisters(0, 0), "here")
    hazards.run(mapped(OLD, RESULT, 3, 0, count=5), "there")  # between the boxes
    with pytest.raises(Wrong, match="there reads value 0"):
        hazards.run(mapped(OLD, RESULT, 2, 0, count=5), "there")


def test_loads_between_seams_are_followed_piece_by_piece() -> None:
    around = Access(1, (1,), jumps=((0, N - 1, -N),))  # 1 to 9, then 0
    few = Access(0, (1,), within=((0, 4, 6),))
    for access, touched in ((around, range(N)), (few, (4, 5))):
        for element in range(N):
            hazards = Hazards(four_values(), fail)
            hazards.run(mapped(OTHER, NEW, 0, element, count=1), "first")
            kernel = Kernel(MAP, (N,), [load(OLD, access)], [store(RESULT)])
            if element in touched:
                with pytest.raises(Wrong, match="reads value 0"):
                    hazards.run(kernel, "second")
            else:
                hazards.run(kernel, "second")


def test_values_without_memory_are_neither_read_nor_written() -> None:
    schedule = with_call_results(four_values())
    with pytest.raises(Wrong, match="here reads value 5, which has no memory"):
        Hazards(schedule, fail).run(mapped(5, RESULT), "here")
    with pytest.raises(Wrong, match="here writes value 5, which has no memory"):
        Hazards(schedule, fail).run(mapped(OTHER, 5), "here")
    assert place_of(schedule, 5) is None
    assert place_of(schedule, NEW) == ("buffer", 0)
    assert place_of(schedule, RESULT) == ("slot", 1)


# -- reads that come after a write ---------------------------------------------------------------


FRONT: list[Region] = [((4,), 0, (1,))]
"""Elements 0 to 3."""


def clashes(launch: Launch, *same: Access, itemsize: int = 8) -> tuple[int, bool] | None:
    """How many loads have to be moved, and whether there are others."""
    found = clashing(7, launch, OLD, FRONT, itemsize, same)
    if found is None:
        return None
    assert all(each.launch == 7 for each in found[0])
    return len(found[0]), found[1]


def test_library_calls_may_read_elements_that_are_not_written() -> None:
    def call(*operands: tuple[int, int, int], dtype: Any = FLOAT64) -> LibraryCall:
        made = [Operand(value, np.dtype(dtype), (count,), offset, (1,))
                for value, offset, count in operands]
        return LibraryCall("matmul", made, RESULT, (N,), FLOAT64, None)

    assert clashes(call((OLD, 4, 6))) == (0, True)
    assert clashes(call((OLD, 3, 6))) is None
    assert clashes(call((OLD, 4, 6), (OLD, 0, 1))) is None
    assert clashes(call((OTHER, 0, 6))) == (0, True)
    assert clashes(call((OLD, 4, 6), dtype="f4")) is None  # counts elements of another size


def test_only_loads_that_touch_what_is_written_are_moved() -> None:
    assert clashes(mapped(OLD, RESULT, 4, count=6)) == (0, True)
    assert clashes(mapped(OLD, RESULT, 3, count=6)) == (1, False)
    both = mapped(OLD, RESULT, 3, count=2)
    both.body += [load(OLD, Access(8, (1,))), load(OTHER)]
    assert clashes(both) == (1, True)
    assert clashes(mapped(OTHER, RESULT)) is None  # it was said to read the value


def test_a_launch_may_read_where_it_writes_itself() -> None:
    kernel = mapped(OLD, RESULT, 0, count=4)
    assert clashes(kernel, WHOLE) == (0, True)
    assert clashes(kernel) == (1, False)


@pytest.mark.parametrize(
    "launch",
    [
        mapped(OLD, RESULT, 4, count=2, where=(((0, 1),),)),
        Kernel(COMPACT, (2,), [load(OLD, Access(4, (1,)))], [], selection=Selection(1, OTHER)),
        folded(RESULT, OLD),
        Kernel(MAP, (2,), [load(OLD, Access(4, (1,)), position=0)], []),
        Kernel(MAP, (2,), [Load(1, OLD, np.dtype("f4"), Access(4, (1,)))], []),
        Kernel(MAP, (2,), [load(OLD, Access(4, (1,), jumps=((0, 1, 1),)))], []),
        Kernel(TILES, (2,), [load(OLD)], []),
        Copy(OLD, RESULT, 80),
        launched(OLD, RESULT),
    ],
    ids=["boxes", "a selection", "after a fold", "a gather", "another size", "seams", "tiles",
         "a copy", "a user's kernel"],
)
def test_reads_that_cannot_be_moved_are_said_to_be_none(launch: Launch) -> None:
    assert clashes(launch) is None


def test_tiles_may_read_other_elements() -> None:
    assert clashes(Kernel(TILES, (2,), [load(OLD, Access(4, (1,)))], [])) == (0, True)


def test_a_fold_that_loads_another_array_is_moved_as_others() -> None:
    kernel = folded(RESULT, OTHER)
    kernel.body = [load(OLD, Access(0, (1, 0)))]
    kernel.extents = (2, 3)
    assert clashes(kernel) == (1, False)


def table_of(*nbytes: int) -> ValueTable:
    """Values of these sizes."""
    table = ValueTable(SimpleNamespace())  # type: ignore[arg-type]
    for size in nbytes:
        table.new(size)
    return table


def test_loads_are_moved_to_a_copy_of_what_they_touch() -> None:
    kernel = Kernel(MAP, (3, 5), [load(OLD, Access(7, (0, 2))), load(OLD, Access(90, (1, 0)))], [])
    moved = [Moved(4, kernel.body, place, (3, 5)) for place in range(2)]
    table = table_of(800, 800)
    copies = moved_before(moved, 800, table)
    assert [copy.extents for copy in copies] == [(5,), (3,)]
    assert [copy.body[0].access for copy in copies] == [Access(7, (2,)), Access(90, (1,))]
    assert [[value for value, _ in reads_of(copy)] for copy in copies] == [[OLD], [OLD]]
    assert [item.value for item in kernel.body] == [2, 3]
    assert [item.access for item in kernel.body] == [Access(0, (0, 1)), Access(0, (1, 0))]
    assert table.nbytes[2:] == [40, 24]
    assert [cut.reason[:6] for cut in table.cuts] == ["copied"] * 2


def test_one_copy_serves_loads_of_the_same_elements() -> None:
    kernels = [Kernel(MAP, (5,), [load(OLD, Access(7, (2,)))], []) for _ in range(3)]
    moved = [Moved(number, each.body, 0, (5,)) for number, each in enumerate(kernels)]
    # 40 bytes may be copied beside an array of 160: they are counted once.
    (copy,) = moved_before(moved, 160, table_of(160, 160))
    assert len(copy.stores) == 1
    assert {each.body[0].value for each in kernels} == {2}


def test_at_most_a_quarter_is_copied_for_later_reads() -> None:
    for nbytes, is_copied in ((160, True), (159, False)):
        kernel = Kernel(MAP, (5,), [load(OLD, Access(7, (2,)))], [])
        table = table_of(nbytes, nbytes)
        assert bool(moved_before([Moved(0, kernel.body, 0, (5,))], nbytes, table)) is is_copied
        assert (kernel.body == [load(OLD, Access(7, (2,)))]) is not is_copied


def test_no_more_loads_than_the_limit_are_moved_for_a_write() -> None:
    for count, is_copied in ((MOST_MOVED, True), (MOST_MOVED + 1, False)):
        body: list[Any] = [load(OLD, Access(start, (1,))) for start in range(count)]
        moved = [Moved(0, body, place, (1,)) for place in range(count)]
        assert bool(moved_before(moved, 8000, table_of(8000))) is is_copied


# -- slots ---------------------------------------------------------------------------------------


def slots(
    launches: list[Launch],
    nbytes: list[int],
    buffers: list[int | None],
    takes_over: dict[int, int] | None = None,
    kept: set[int] | None = None,
    dead: set[int] | None = None,
) -> tuple[list[int | None], list[int], dict[int, int]]:
    return slots_of(launches, nbytes, buffers, takes_over or {}, kept or set(), dead or set())


def test_values_that_do_not_live_at_once_share_memory() -> None:
    # 1 is made of 0, 2 of 1, 3 of 2: 1 is free when 3 is made, and not when 2 is.
    launches: list[Launch] = [mapped(0, 1), mapped(1, 2), mapped(2, 3)]
    assert slots(launches, [80] * 4, [0, None, None, None], kept={3}) == (
        [None, 0, 1, 0], [80, 80], {})


def test_what_is_kept_keeps_its_memory() -> None:
    launches: list[Launch] = [mapped(0, 1), mapped(1, 2), mapped(2, 3)]
    assert slots(launches, [80] * 4, [0, None, None, None], kept={1, 3}) == (
        [None, 0, 1, 2], [80, 80, 80], {})


def test_values_of_other_sizes_share_nothing() -> None:
    launches: list[Launch] = [mapped(0, 1), mapped(1, 2), mapped(2, 3)]
    assert slots(launches, [80, 80, 80, 88], [0, None, None, None], kept={3})[:2] == (
        [None, 0, 1, 2], [80, 80, 88])


def test_a_dead_array_is_free_after_its_last_read() -> None:
    launches: list[Launch] = [mapped(0, 1), mapped(1, 2)]
    args = (launches, [80, 80, 80], [5, None, None])
    assert slots(*args, kept={2}, dead={5}) == ([None, 0, 1], [80, 80], {1: 5})
    assert slots(*args, kept={2}) == ([None, 0, 1], [80, 80], {})


def test_what_takes_over_a_value_lies_where_that_does() -> None:
    # 1 over the array 0, and 2 over 1; somebody asks for 2.
    launches: list[Launch] = [mapped(0, 1), mapped(1, 2), mapped(2, 3)]
    assert slots(launches, [80] * 4, [5, None, None, None], {1: 0, 2: 1}, {2, 3}, {5}) == (
        [None, 0, 0, 1], [80, 80], {0: 5})
    # Nobody: what follows may have its memory, as it is read in that launch for the last time.
    launches.append(mapped(3, 4))
    assert slots(launches, [80] * 5, [5, None, None, None, None], {1: 0, 2: 1}, {4}, {5}) == (
        [None, 0, 0, 1, 0], [80, 80], {0: 5})


def test_memory_is_not_free_while_a_later_launch_reads_it() -> None:
    launches: list[Launch] = [mapped(0, 1), mapped(0, 2), mapped(1, 3), mapped(2, 4)]
    found, sizes, _ = slots(launches, [80] * 5, [0, None, None, None, None], kept={4})
    assert found[:4] == [None, 0, 1, 2]
    assert found[4] in (0, 2)  # nobody reads 3, either
    assert sizes == [80, 80, 80]
