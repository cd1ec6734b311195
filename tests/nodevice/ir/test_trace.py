"""While a thread traces, its reads and writes of storage cells go to the trace, nobody else's."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from clfuse.errors import JitError
from clfuse.ir import build
from clfuse.ir.nodes import Storage
from clfuse.ir.trace import (
    Drawn,
    Placeholder,
    Trace,
    active,
    require_bytes,
    tracing,
    without_traced,
)
from tests.support.recording import array, call


def test_a_trace_sees_placeholders_and_changes_nothing() -> None:
    first, other = array(3), array(2, dtype=np.int8)
    argument, found = Storage(first), Storage(other)
    traced = Trace("f", None, [argument])
    with tracing(traced):
        assert active() is traced
        node = argument.node
        assert (node.shape, node.dtype) == (first.shape, first.dtype)
        assert isinstance(node.buffer, Placeholder)
        assert argument.node is node
        made = Storage(call("negative", node))
        made.node = call("negative", made.node)
        argument.node = made.node
        assert argument.node is made.node
        assert found.node.buffer.number == 1
    assert active() is None
    assert argument.node is first
    assert found.node is other
    assert made.node.inputs[0].inputs[0] is node
    assert traced.written() == {0: made.node}
    assert [traced.is_own(cell) for cell in (argument, found, made)] == [False, False, True]
    assert without_traced([made.node, first]) == [first]


def test_other_threads_see_what_is_there() -> None:
    cell = Storage(array(3))
    stored = cell.node
    seen = []
    with tracing(Trace("f", None, [])):
        thread = threading.Thread(target=lambda: seen.append(cell.node))
        thread.start()
        thread.join()
        assert cell.node is not stored
    assert seen == [stored]


def test_an_error_ends_the_trace() -> None:
    slot = vars(Storage)["node"]
    with pytest.raises(KeyError), tracing(Trace("f", None, [])):
        assert vars(Storage)["node"] is not slot
        raise KeyError
    assert vars(Storage)["node"] is slot
    assert active() is None


def test_what_depends_on_a_trace_is_left_out_of_evaluating_all() -> None:
    cell = Storage(array(3))
    traced = Trace("f", None, [cell])
    with tracing(traced):
        node = cell.node
        with pytest.raises(JitError, match=r"looked at, at .*test_trace.py:\d+, while .* traces f"):
            require_bytes([node.buffer])
        assert traced.error is not None
    pending = call("negative", node)
    plain = call("negative", array(3))
    both = build.concatenate([plain, pending], 0)
    assert without_traced([pending, plain, both, build.iota(3)])[0] is plain
    assert len(without_traced([pending, plain, both, build.iota(3)])) == 2
    with pytest.raises(JitError, match="outside of it"):
        require_bytes([node.buffer])
    with pytest.raises(JitError, match="outside of it"):
        _ = node.buffer.mem


def test_draws_are_counted_by_generator() -> None:
    traced = Trace("f", None, [])
    one, other = object(), object()
    key, first = traced.draw(one)
    same_key, second = traced.draw(one)
    other_key, _ = traced.draw(other)
    assert key is same_key
    assert key is not other_key
    assert [node.buffer.offset for node in (key, first, second)] == [None, 0, 1]
    assert all(type(node.buffer) is Drawn for node in (key, first))
    assert [(number, count) for number, count, _ in traced.generators.values()] == [(0, 2), (1, 1)]
    traced.forget()
    assert not traced.generators
