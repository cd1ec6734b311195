"""A trace that an interrupt ends anywhere leaves nothing behind: what comes next, traced or not,
has NumPy's values."""

from __future__ import annotations

import gc
from collections import deque
from contextlib import suppress
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np
import pytest

import clfuse as cf
from clfuse._core import loading
from clfuse.ir import nodes, trace
from clfuse.ir.nodes import Storage
from clfuse.tools.check.ended_early import Interrupt

pytestmark = pytest.mark.clfuse_only

TRACE = Path(trace.__file__).name


class InTrace(Interrupt):
    """Interrupts what keeps the books of traces: there the moment matters most."""

    def is_meant(self, code: CodeType) -> bool:
        return code.co_filename.endswith(f"/{TRACE}")


def drawing(rng: Any) -> Any:
    def drawn(x: Any, t: float) -> Any:
        c = x + rng.random(20)
        c[1:] += t
        return c % 16

    return cf.jit(drawn)


def next_of(rng: Any) -> np.ndarray[Any, Any]:
    """What `drawing` returns next, of 0, 1, ... 19 and 2.0."""
    again = cf.random.default_rng(0)
    again.bit_generator.state = rng.bit_generator.state
    expected = np.arange(20.0) + np.array(again.random(20))
    expected[1:] += 2.0
    return expected % 16


def require_untraced() -> None:
    """Recorded work is computed, by NumPy and by kernels, along with all that waits."""
    for host_us in (1_000_000, 0):
        with cf.config.override(host_us=host_us):
            a, b = cf.arange(7.0) * 2, cf.arange(5.0) + 1
            a[1:3] -= 1
            cf.evaluate(a)
            cf.evaluate()
            assert a.tolist() == [0, 1, 3, 6, 8, 10, 12]
            assert b.tolist() == [1, 2, 3, 4, 5]


def traced_and_interrupted(kind: type[Interrupt], step: int) -> int:
    """How often a first call was interrupted, at every `step`-th place."""
    rng = cf.random.default_rng(3)
    slot = vars(Storage)["node"]
    x = cf.arange(20.0)
    drawing(rng)(x, 2.0)
    with kind() as counted:
        drawing(rng)(x, 2.0)
    gc.collect()
    before = trace._alive[0]  # what an earlier test's error holds
    for at in range(1, counted.count + 1, step):
        function, interrupt = drawing(rng), kind(at)
        with suppress(KeyboardInterrupt), interrupt:
            function(x, 2.0)
        where = interrupt.where
        assert trace.active() is None, where
        assert trace.tracers == [0], where
        assert vars(Storage)["node"] is slot, where
        # No cycle holds what was traced; a destructor in Python may lose count.
        assert trace._alive[0] <= before or loading.load() is None, where
        require_untraced()
        expected = next_of(rng)
        np.testing.assert_allclose(function(x, 2.0), expected, 1e-12, err_msg=where)
    return len(range(0, counted.count, step))


def test_bookkeeping_of_a_trace_may_be_interrupted_anywhere() -> None:
    assert traced_and_interrupted(InTrace, 1) > 50


def test_a_first_call_may_be_interrupted_anywhere() -> None:
    assert traced_and_interrupted(Interrupt, 23) > 30


def test_a_leaf_that_was_half_made_is_not_taken_off_the_count() -> None:
    """Else nobody would look for the leaves without bytes that are left, and one would be read."""
    for kind in (trace.GivenAway, trace.Placeholder, trace.Drawn):
        before = trace._alive[0]
        made = kind.__new__(kind)
        del made
        gc.collect()
        assert trace._alive[0] == before


def test_what_a_trace_left_is_not_computed_with_other_work() -> None:
    """An interrupt comes while a leaf is made; later a function leaves an array of its trace."""
    left: deque[Any] = deque()  # of a library: what is put into it stays

    @cf.jit
    def leaving(x: Any) -> Any:
        left.append(x + 1)
        return x * 2

    x = cf.arange(20.0)
    for at in range(1, 12):
        with suppress(KeyboardInterrupt), InTrace(at):
            cf.jit(lambda x: x + 1)(x)
    leaving(x)
    assert nodes.waiting_count()
    require_untraced()
    with pytest.raises(cf.JitError, match="looked at outside"):
        left[0].tolist()
