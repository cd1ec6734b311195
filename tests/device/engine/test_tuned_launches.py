"""Plans that come back are tuned while they run: whatever happens, results are NumPy's.

Times are made up: `Trials.timed` gets them by the candidate's number.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest

import clfuse as cf
from clfuse.engine import background, executable, plans
from clfuse.engine.evaluate import forget_plans
from clfuse.engine.executable import Planned, Prepared
from clfuse.engine.tuning import launches
from clfuse.engine.tuning.trials import ORDINARY, Trials
from clfuse.runtime.files import geometries, storage
from clfuse.runtime.launches.launch import BoundKernel
from clfuse.tools.check import driver_faults

pytestmark = pytest.mark.clfuse_only

N = 30_011
MS = 1e6
RUNS = 200


@pytest.fixture(autouse=True)
def tuning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Tuning is on, with a folder of its own, and every kernel is worth it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(launches, "WORTH", 0)
    monkeypatch.setattr(launches, "LAUNCH_NS", 1e9)
    storage.forget()
    geometries.forget()
    with cf.config.override(tuning="on", inline="off", host_us=0, build_after_ms=0):
        forget_plans()
        yield
        background.finish()
        forget_plans()
    geometries.forget()
    storage.forget()


@pytest.fixture
def timed(monkeypatch: pytest.MonkeyPatch) -> dict[int, float]:
    """Candidate -> its time; 0 is what was planned. Others take 3 ms."""
    times: dict[int, float] = {0: 2 * MS}
    note = Trials.timed

    def made_up(self: Trials, number: int, elapsed_ns: float, overhead_ns: float) -> None:
        assert elapsed_ns > 0
        note(self, number, times.get(number, 3 * MS), 1000.0)

    monkeypatch.setattr(Trials, "timed", made_up)
    return times


def arrays() -> tuple[Any, Any]:
    x, y = cf.linspace(0, 1, N), cf.linspace(3, 5, N)
    cf.evaluate(x, y)
    return x, y


def step(x: Any, y: Any) -> Any:
    return x * 2.0 + y


def run(count: int = RUNS, call: Callable[[Any, Any], Any] = step) -> None:
    """Evaluate so often, with other values every time."""
    x, y = arrays()
    for number in range(count):
        if number % 20 == 0:
            x += 1.0
            cf.evaluate(x)
        made = call(x, y)
        cf.evaluate(made)
        cf.synchronize()
        if number % 20 == 19 or number == count - 1:
            numpy.testing.assert_array_equal(cf.asnumpy(made), step(cf.asnumpy(x), cf.asnumpy(y)))


def the_plan() -> Planned:
    """The one of `step`."""
    (found,) = [
        each for each in plans.kept.values()
        if len({value.buffer for value in each.schedule.values} - {None}) == 2
    ]
    return found


def the_step() -> Prepared:
    found = the_plan().steps[0]
    assert isinstance(found, Prepared)
    return found


def test_the_best_is_launched_and_kept(timed: dict[int, float]) -> None:
    timed[2] = MS
    with launches.at_once():
        run()
        tuned = [each for each in launches.running if each.is_done]
        assert tuned
        found = the_step().kept
    assert found is not None
    assert len(found.changes) == 1
    assert (found.before_ns, found.after_ns) == (2 * MS, MS)
    assert str(found).endswith("1,000 us instead of 2,000 us, 50% less")
    # Another process reads it.
    forget_plans()
    geometries.forget()
    run(4)
    again = the_step()
    assert again.kept == found
    with launches.at_once():
        forget_plans()
        run(20)
        assert not [each for each in launches.running if not each.is_done]


def test_what_was_planned_stays_where_nothing_is_better(timed: dict[int, float]) -> None:
    with launches.at_once():
        run()
        planned = the_step()
        assert planned.kept is not None
        assert not planned.kept.changes
    assert the_plan().tuning is None


def test_a_function_of_jit_is_tuned(timed: dict[int, float]) -> None:
    timed[1] = MS
    with launches.at_once():
        run(call=cf.jit(step))
        assert any(each.is_done for each in launches.running)
    device = geometries.about(cf.get_device().traits)
    assert any(each.changes for each in geometries.of_device(device))


def test_nothing_is_tried_in_few_runs(timed: dict[int, float]) -> None:
    run(ORDINARY.least_launches - 4)
    assert the_plan().tuning is None
    run(8)
    assert the_plan().tuning is not None


def test_off_nothing_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*arguments: Any) -> None:
        raise AssertionError("a launch was timed")

    monkeypatch.setattr(BoundKernel, "enqueue_timed", never)
    with cf.config.override(tuning="off"), launches.at_once():
        run()
        assert not launches.running


def test_a_profile_changes_no_decision(timed: dict[int, float]) -> None:
    timed[2] = MS
    with launches.at_once():
        run(6)
        (tuning,) = [each for each in launches.running if not each.is_done][-1:]
        tried = [each.trials.tried for each in tuning._tuned]
        lost = [each.trials.lost_ns for each in tuning._tuned]
        with cf.profile() as times:
            run(20)
        assert len(times.kernels) >= 20
        assert [each.trials.tried for each in tuning._tuned] == tried
        assert [each.trials.lost_ns for each in tuning._tuned] == lost
        run()
        assert tuning.is_done


@pytest.mark.parametrize("status", [-5, -54])
def test_a_candidate_that_is_refused_is_dropped(
    timed: dict[int, float], monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    timed[1] = timed[2] = MS
    device = cf.get_device()
    launch = BoundKernel.enqueue_timed
    refused = []

    def enqueue(self: BoundKernel, *arguments: Any) -> Any:
        if any(self is each.bound for planned in plans.kept.values() for each in planned.steps):
            return launch(self, *arguments)  # as planned
        refused.append(self)
        with driver_faults.failing(device, "clEnqueueNDRangeKernel", status):
            return launch(self, *arguments)

    monkeypatch.setattr(BoundKernel, "enqueue_timed", enqueue)
    with launches.at_once():
        run()
        assert len(refused) > 1
        assert len(set(map(id, refused))) == len(refused)  # none is launched a second time
        found = the_step().kept
    assert not device.lost
    assert found is not None
    assert not found.changes


def test_where_no_launch_can_be_timed_all_are_as_planned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    device = cf.get_device()
    launch = BoundKernel.enqueue_timed

    def enqueue(self: BoundKernel, *arguments: Any) -> Any:
        with driver_faults.failing(device, "clEnqueueNDRangeKernel", -5):
            return launch(self, *arguments)

    monkeypatch.setattr(BoundKernel, "enqueue_timed", enqueue)
    with launches.at_once():
        run(40)
        assert launches.running
        assert all(each.is_done for each in launches.running)


def test_a_candidate_that_does_not_build_is_dropped(
    timed: dict[int, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: Any) -> Any:
        raise cf.KernelBuildError("no")

    with launches.at_once():
        run(6)
        assert the_plan().tuning is not None
        monkeypatch.setattr(launches, "program_of", refuse)
        run()
        assert the_plan().tuning is None


def test_what_is_kept_and_does_not_build_is_as_planned(
    timed: dict[int, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    timed[1] = MS
    with launches.at_once():
        run()
    assert the_step().kept is not None
    forget_plans()
    build = executable.program_of

    def refuse(part: Any, device: Any) -> Any:
        if part.planned is not None and part.kept is not None and part.kept.changes:
            raise cf.KernelBuildError("no")
        return build(part, device)

    monkeypatch.setattr(executable, "program_of", refuse)
    run(4)
    assert the_step().kept is None


def test_threads_tune_one_plan(timed: dict[int, float]) -> None:
    timed[2] = MS
    errors: list[BaseException] = []

    def work() -> None:
        try:
            run(120)
        except BaseException as error:
            errors.append(error)

    with launches.at_once():
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not errors


def test_in_ordinary_runs_programs_are_built_behind(
    timed: dict[int, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    # As if a kernel of a second: then a build is worth it after a few hundred launches.
    for number in range(20):
        timed[number] = 1e9
    begun = []
    begin = background.begin
    monkeypatch.setattr(background, "begin", lambda calls, *more: begun.append(calls) or begin(
        calls, *more))
    with cf.config.override(background="on"):
        run(1500)
    assert begun


def test_explain_and_doctor_say_what_was_gained(
    timed: dict[int, float], capsys: pytest.CaptureFixture[str]
) -> None:
    from clfuse.__main__ import main

    x, y = arrays()
    assert "tuned" not in str(cf.explain(step(x, y)))
    timed[2] = MS
    with launches.at_once():
        run()
    found = the_step().kept
    assert found is not None
    plan = cf.explain(step(x, y))
    assert f"   tuned: {found}" in str(plan)
    assert "50% less" in plan.kernels[0].tuned
    assert "50% less" in plan._repr_html_()
    main(["doctor"])
    shown = capsys.readouterr().out
    assert f"{found.kernel}: {found}" in shown
    with cf.config.override(tuning="off"):
        main(["doctor"])
    assert "kernels are not tuned" in capsys.readouterr().out


def test_the_next_run_goes_on_where_one_has_left_off(timed: dict[int, float]) -> None:
    timed[1] = MS  # the others are slower than that
    with launches.at_once():
        run(45)
        (tuned,) = the_plan().tuning._tuned
        assert tuned.trials.best == 1
        first = tuned.step.kept
        assert first is not None
    geometries.forget()
    forget_plans()
    timed.clear()
    timed.update({0: MS})
    with launches.at_once():
        run()
        last = the_step().kept
    assert last is not None
    assert last.changes == first.changes
    assert last.tried > first.tried
    assert last.before_ns == pytest.approx(2 * last.after_ns)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_calculates_without_trials(
    shared_memory: None, timed: dict[int, float]
) -> None:
    timed[2] = MS
    with launches.at_once():
        x, y = arrays()
        run(12)
        child = os.fork()
        if child == 0:
            made = step(x, y)
            is_right = numpy.array_equal(cf.asnumpy(made), step(cf.asnumpy(x), cf.asnumpy(y)))
            os._exit(0 if is_right else 1)
        assert os.waitpid(child, 0)[1] == 0
        run()
        assert the_step().kept is not None
