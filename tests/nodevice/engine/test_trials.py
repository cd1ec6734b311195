"""Tuning tries other geometries within its bounds, and keeps one only if it is clearly better.

Times are made up here; no clock is read.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest

from clfuse.engine.tuning.trials import AT_ONCE, NEVER, ORDINARY, Limits, Trials, What

MS = 1e6
OVERHEAD = 150_000.0
WRITING = 1 * MS
BUILDING = 150 * MS


class Program:
    """A kernel that is launched again and again, as the engine does it.

    `usual` has the times of what was planned and of each candidate. `time` gives one of a launch.
    """

    def __init__(
        self,
        usual: Sequence[float],
        *,
        limits: Limits = ORDINARY,
        time: Callable[[int, int], float] | None = None,
        unbuilt: Sequence[int] = (),
        refused: Sequence[int] = (),
    ) -> None:
        self.usual, self.time = usual, time or (lambda number, launch: usual[number])
        self.unbuilt, self.refused = unbuilt, refused
        self.trials = Trials(len(usual) - 1, limits, usual[0])
        self.log: list[tuple[What, int]] = []
        self.tried: list[tuple[int, float]] = []
        self.ran_ns = self.lost_ns = 0.0
        self.worst = 0.0
        self.due = self.trials.due_after()

    def launch(self, count: int) -> Program:
        for _ in range(count):
            self._launch()
        return self

    def _launch(self) -> None:
        trials = self.trials
        trials.ran(1)
        self.due -= 1
        best = trials.best
        if self.due > 0:
            self.ran_ns += self.usual[best]
            return
        action = trials.next()
        self.log.append((action.what, action.number))
        number = action.number
        self.ran_ns += self.usual[best]
        if action.what is What.WRITE:
            trials.written(number, WRITING, is_built=number not in self.unbuilt)
            self.lost_ns += WRITING
        elif action.what is What.BUILD:
            trials.built(number, BUILDING)
            self.lost_ns += BUILDING
        elif action.what is What.TIME and number in self.refused:
            trials.refused(number)
        elif action.what is What.TIME:
            elapsed = self.time(number, trials.launches)
            self.tried.append((number, elapsed))
            self.lost_ns += OVERHEAD + max(elapsed - self.usual[best], 0.0)
            trials.timed(number, elapsed, OVERHEAD)
        if trials.launches >= ORDINARY.least_launches and self.ran_ns:
            self.worst = max(self.worst, self.lost_ns / self.ran_ns)
        self.due = trials.due_after()


def test_the_best_candidate_is_kept() -> None:
    program = Program([2 * MS, 3 * MS, 1 * MS, 1.5 * MS]).launch(2000)
    assert program.trials.is_done
    assert program.trials.best == 2
    assert program.trials.times_ns() == (2 * MS, 1 * MS)
    assert program.trials.tried == 3


def test_what_was_planned_stays_where_nothing_is_clearly_better() -> None:
    for other in (2 * MS, 1.95 * MS, 2.1 * MS):  # a tie, 2.5% better, worse
        program = Program([2 * MS, other]).launch(2000)
        assert program.trials.is_done
        assert program.trials.best == 0
        assert program.trials.times_ns() == (2 * MS, 2 * MS)


@pytest.mark.parametrize("usual_us", [30, 300, 2_000, 100_000])
def test_no_more_than_the_bound_is_lost(usual_us: int) -> None:
    usual = usual_us * 1e3
    times = [usual, 1.9 * usual, 1.01 * usual, 2 * usual, 0.9 * usual]
    program = Program(times, unbuilt=[2, 4]).launch(100_000)
    assert program.worst <= ORDINARY.share
    assert program.lost_ns >= program.trials.lost_ns > 0


def test_what_a_very_long_launch_has_cost_is_made_up_for() -> None:
    # Nobody knows before what it takes.
    program = Program([MS, 9 * MS, 9 * MS]).launch(20_000)
    assert [number for number, _ in program.tried].count(1) == 2
    assert program.lost_ns <= ORDINARY.share * program.ran_ns


def test_a_candidate_of_twice_the_time_is_launched_twice() -> None:
    program = Program([1 * MS, 2.5 * MS, 1 * MS]).launch(20_000)
    assert [number for number, _ in program.tried].count(1) == 2
    assert program.trials.is_done


def test_a_later_launch_of_more_than_twice_the_time_is_the_last() -> None:
    seen = []

    def time(number: int, launch: int) -> float:
        if number != 1:
            return 1 * MS
        seen.append(launch)
        return 2.1 * MS if len(seen) == 3 else 0.5 * MS

    program = Program([1 * MS, 0.5 * MS], time=time).launch(5_000)
    assert len(seen) == 3
    assert program.trials.is_done
    assert program.trials.best == 0


def test_the_first_launch_of_a_candidate_counts_for_nothing() -> None:
    seen: list[int] = []

    def time(number: int, launch: int) -> float:
        if number != 1:
            return 1 * MS
        seen.append(launch)
        return 40 * MS if len(seen) == 1 else 0.5 * MS  # the driver still works on it

    program = Program([1 * MS, 0.5 * MS], time=time).launch(20_000)
    assert program.trials.best == 1
    # What it cost is made up for before anything else is tried.
    assert seen[1] - seen[0] > 40 / ORDINARY.share * 0.9


def test_nothing_is_tried_in_short_runs() -> None:
    program = Program([5 * MS, 1 * MS]).launch(ORDINARY.least_launches - 1)
    assert not program.log
    program = Program([1 * MS, 0.5 * MS]).launch(ORDINARY.least_launches + 20)
    assert {number for number, _ in program.tried} == {0}


def test_kernels_that_take_no_time_are_left_alone() -> None:
    program = Program([10_000.0, 1_000.0]).launch(10_000)
    assert program.trials.is_done
    assert len(program.tried) == 3
    assert program.trials.due_after() == NEVER


def test_noise_decides_nothing() -> None:
    for seed in range(200):
        noise = random.Random(seed)

        def time(number: int, launch: int, noise: random.Random = noise) -> float:
            return MS * (1 + noise.expovariate(20))  # other work only adds

        program = Program([MS, MS, MS, MS], time=time).launch(3000)
        assert program.trials.is_done
        before, after = program.trials.times_ns()
        assert program.trials.best == 0 or after > 0.85 * before


def test_under_heavy_noise_what_is_slower_is_not_kept() -> None:
    noise = random.Random(3)
    usual = [2 * MS, 2.2 * MS, 2.4 * MS, 2 * MS, 2.3 * MS, 2.8 * MS]
    wrong = 0
    for _ in range(200):
        program = Program(
            usual,
            # A machine with three times as much to do as it has cores.
            time=lambda number, launch: usual[number] * (1 + noise.expovariate(1)),
        ).launch(20_000)
        wrong += usual[program.trials.best] > 2 * MS
    assert wrong <= 2


def test_what_is_much_better_is_found_under_noise() -> None:
    noise = random.Random(7)
    wrong = 0
    for _ in range(100):
        usual = [2 * MS, 2 * MS, 1.2 * MS, 2.2 * MS]
        program = Program(
            usual,
            time=lambda number, launch, usual=usual: usual[number] * (1 + noise.expovariate(10)),
        ).launch(5000)
        wrong += program.trials.best != 2
    assert wrong <= 5


def test_a_machine_that_becomes_slower_changes_nothing() -> None:
    # All launches take three times as long from some moment on: the candidates are compared with
    # launches of the same time.
    def time(number: int, launch: int) -> float:
        return MS * (3 if launch > 130 else 1)

    program = Program([MS, MS, MS], time=time).launch(30_000)
    assert program.trials.is_done
    assert program.trials.best == 0


def test_what_is_refused_is_not_tried_again() -> None:
    program = Program([2 * MS, 1 * MS, 1.5 * MS], refused=[1]).launch(5000)
    assert program.log.count((What.TIME, 1)) == 1
    assert program.trials.best == 2


def test_programs_are_built_only_when_they_are_worth_it() -> None:
    program = Program([1 * MS, 0.5 * MS], unbuilt=[1]).launch(5000)
    assert (What.BUILD, 1) not in program.log  # five seconds: a tenth of one may be lost
    program.launch(20_000)
    assert program.log.count((What.BUILD, 1)) == 1
    assert program.trials.best == 1


def test_while_a_program_is_built_nothing_else_is_done() -> None:
    trials = Trials(1, AT_ONCE)
    trials.ran(1)
    for _ in range(3):
        assert trials.next().what is What.TIME
        trials.timed(0, MS, OVERHEAD)
    assert trials.next().what is What.WRITE
    trials.written(1, WRITING, is_built=False)
    assert trials.next().what is What.BUILD
    assert trials.next().what is What.RUN
    trials.refused(1)
    assert trials.is_done


def test_at_once_it_takes_as_many_launches_as_it_needs() -> None:
    program = Program([2 * MS, 3 * MS, 1 * MS, 1.5 * MS], limits=AT_ONCE, unbuilt=[2])
    program.launch(150)
    assert program.trials.is_done
    assert program.trials.best == 2


def test_a_kernel_without_candidates_is_done() -> None:
    trials = Trials(0)
    assert trials.is_done
    assert trials.next().what is What.RUN
