"""Evaluating everything that waits: what cannot be computed keeps nothing else from it, and what is
large is not looked at again and again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import clfuse as cf
from clfuse.engine import evaluate
from clfuse.ir.nodes import Node

pytestmark = pytest.mark.clfuse_only


def test_what_cannot_be_built_does_not_stop_the_rest() -> None:
    broken = cf.ElementwiseKernel("float64 x", "float64 y", "y = no_such_function(x)", "broken")
    cf.evaluate()
    with cf.config.override(host_us=0):
        x = cf.arange(40.0)
        cf.evaluate(x)
        before, wrong, after = x + 1, broken(x), x * 2
        with pytest.raises(cf.KernelBuildError):
            cf.evaluate()
        for found in (before, after):
            assert found._storage.node.buffer is not None
        np.testing.assert_array_equal(before.get(), np.arange(40.0) + 1)
        np.testing.assert_array_equal(after.get(), np.arange(40.0) * 2)
        cf.evaluate()  # it is not tried again
        with pytest.raises(cf.KernelBuildError):
            wrong.get()


def test_arrays_of_two_devices_are_computed_on_the_current_one() -> None:
    others = [device for device in cf.devices() if device is not cf.get_device()]
    if not others:
        pytest.skip("there is one device")
    with cf.config.override(host_us=0):
        x = cf.arange(30.0) * 2
        cf.evaluate(x)
        with cf.device(others[0]):
            y = cf.arange(30.0) + 1
            cf.evaluate(y)
        z = x * y + x
        np.testing.assert_array_equal(z.get(), np.arange(30.0) * 2 * (np.arange(30.0) + 2))
        assert z._storage.node.buffer.device is cf.get_device()


def test_large_work_that_waits_is_looked_at_less_and_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two looks 2, 4, 8, ... evaluations of small arrays go by."""
    taken, plain = [0], evaluate.take

    def take(nodes: Sequence[Node]) -> Any:
        taken[0] += any(node is large._storage.node for node in nodes)
        return plain(nodes)

    cf.evaluate()
    with cf.config.override(host_us=50):
        x = cf.arange(10.0)
        source = cf.arange(1_000_000.0)
        cf.evaluate(x, source)
        large = cf.sqrt(source * 2 + 1)
        monkeypatch.setattr(evaluate, "take", take)
        monkeypatch.setattr(evaluate, "_rest_in_vain", [0, 0])
        looks = []
        for number in range(40):
            with cf.config.override(host_us=0):
                small = x + number  # recorded, so that it is evaluated
            cf.evaluate(small)
            looks.append(taken[0])
            assert small.tolist() == [*range(number, number + 10)]
    looked = [number for number in range(1, 40) if looks[number] > looks[number - 1]]
    assert np.diff(looked).tolist() == [3, 5, 9, 17]
    np.testing.assert_allclose(large[:3].tolist(), np.sqrt([1.0, 3.0, 5.0]))
