"""What was evaluated often is evaluated by a shorter way (`_core/known_evaluations.pxi`), and
nobody can tell but by the time."""

import gc
import sys

import numpy as np
import pytest

import clfuse as cf
from clfuse import config
from clfuse._core import loading
from tests.support.threads import in_threads

TIMES = 12


def launched(action):
    before = cf.stats()
    action()
    after = cf.stats()
    return {
        name: after[name] - before[name]
        for name in ("kernels_launched", "plans_made", "plans_reused")
    }


def stored(values):
    made = cf.array(values)
    cf.evaluate(made + 0)
    return made


def test_values_follow_the_inputs():
    for turn in range(TIMES):
        values = np.arange(3000.0) + turn
        mine = stored(values)
        total = ((mine - 1.5) * mine).sum()
        cf.evaluate(total)
        assert float(total) == pytest.approx(((values - 1.5) * values).sum(), rel=1e-14)


def test_it_counts_as_before():
    mine = stored(np.arange(3000.0))
    counts = [launched(lambda: cf.evaluate((mine * 2 - mine).max())) for _ in range(TIMES)]
    assert counts[0]["plans_made"] == 1
    assert all(count["plans_made"] == 0 and count["plans_reused"] == 1 for count in counts[2:])
    assert len({count["kernels_launched"] for count in counts[1:]}) == 1


@pytest.mark.usefixtures("uncollected")
def test_memory_goes_back_with_the_results():
    mine = stored(np.arange(50_000.0))

    def step():
        results = mine * 3, mine.sum()
        cf.evaluate(*results)

    for _ in range(4):
        step()
    gc.collect()
    before = cf.stats()["device_bytes_now"]
    for _ in range(TIMES):
        step()
    assert cf.stats()["device_bytes_now"] == before


def test_arrays_written_to_in_place_hold_what_was_written():
    values = np.arange(4000.0)
    mine = stored(values)
    view = mine[::2]
    for turn in range(TIMES):
        mine += turn
        values += turn
        cf.evaluate(mine)
        if turn == TIMES // 2:
            held, wanted = mine * 1.0, values * 1.0
    np.testing.assert_array_equal(np.asarray(mine), values)
    np.testing.assert_array_equal(np.asarray(view), values[::2])
    np.testing.assert_array_equal(np.asarray(held), wanted)


def test_an_old_value_survives_the_next_write():
    mine = stored(np.zeros(4000))
    olds = []
    for _ in range(TIMES):
        olds.append(mine.copy())
        mine += 1.0
        cf.evaluate(mine, olds[-1])
    for turn, old in enumerate(olds):
        assert (np.asarray(old) == turn).all()


def test_settings_that_change_are_seen():
    mine = stored(np.arange(3000.0))

    def step():
        cf.evaluate(((mine * 2 + 1) * mine - 3) * mine)

    fused = [launched(step)["kernels_launched"] for _ in range(TIMES)]
    with config.override(fusion=False):
        apart = [launched(step)["kernels_launched"] for _ in range(TIMES)]
    again = launched(step)["kernels_launched"]
    assert set(fused) == {1}
    assert again == 1
    assert len(set(apart)) == 1
    assert apart[0] > 1


def test_an_input_on_the_host_replaces_one_on_the_device():
    for turn in range(TIMES):
        values = np.arange(3000.0) * turn
        mine = cf.array(values) if turn % 3 == 2 else stored(values)
        total = (mine * mine).sum()
        cf.evaluate(total)
        assert float(total) == (values * values).sum()


def test_a_profile_sees_the_launches():
    mine = stored(np.arange(3000.0))
    counts = [launched(lambda: cf.evaluate(mine.sum())) for _ in range(TIMES)]
    with cf.profile() as profile:
        cf.evaluate(mine.sum())
    assert len(profile.kernels) == counts[-1]["kernels_launched"]


@pytest.mark.skipif(loading.load() is None, reason="clfuse is not compiled")
def test_pythons_way_is_not_taken(monkeypatch):
    if cf.get_device().simulation is not None:
        pytest.skip("launches of a simulated device go by Python")
    mine = stored(np.arange(3000.0))

    def step():
        cf.evaluate((mine * 7 - mine).sum())

    def refused(snapshot):
        raise AssertionError("the plan was looked up in Python")

    for _ in range(TIMES):
        step()
    with cf.profile():  # which has it done by Python, on a queue of its own
        step()
    monkeypatch.setattr(sys.modules["clfuse.engine.evaluate"], "_run", refused)
    step()
    with pytest.raises(AssertionError):
        cf.evaluate((mine * 11 - mine).sum() + mine.max())


def test_a_value_that_somebody_else_holds_is_kept():
    mine = stored(np.arange(3000.0))
    for turn in range(TIMES):
        part = mine * 2
        total = part.sum()
        if turn % 2:
            del part
        cf.evaluate(total)
        assert float(total) == 2 * np.arange(3000.0).sum()
        if not turn % 2:
            np.testing.assert_array_equal(np.asarray(part), np.arange(3000.0) * 2)


def test_threads_evaluate_alike():
    wrong = []

    def work(number):
        values = np.arange(2000.0) + number
        mine = cf.array(values)
        for _ in range(TIMES):
            if float((mine * mine).sum()) != (values * values).sum():
                wrong.append(number)

    in_threads(work)
    assert not wrong
