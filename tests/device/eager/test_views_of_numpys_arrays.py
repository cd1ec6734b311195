"""Views by functions that get an array of NumPy's own, shapes in lists, and arguments by name: they
are made at the call, with NumPy's values and errors."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.support.marks import compiled

pytestmark = pytest.mark.clfuse_only


@pytest.fixture(autouse=True)
def small(xp: ModuleType) -> Iterator[None]:
    with xp.config.override(host_us=50):
        yield


ONE = (
    "np.reshape({0}, (4, -1))", "np.reshape({0}, [2, 6])", "np.reshape({0}, [12])",
    "np.transpose({0})", "np.transpose({0}, [1, 0])", "np.transpose({0}, axes=(1, 0))",
    "np.transpose({0}, axes=[1, 0])", "np.ravel({0}.T)", "np.ravel({0})", "np.squeeze({0}[:1])",
    "np.squeeze({0}[:1], axis=0)", "np.expand_dims({0}, axis=0)", "np.expand_dims({0}, [0, 2])",
    "np.swapaxes({0}, 0, 1)", "np.moveaxis({0}, 0, 1)", "np.broadcast_to({0}, [2, 3, 4])",
    "np.broadcast_to({0}, shape=(2, 3, 4))", "np.flip({0})", "np.flipud({0})", "np.rot90({0})",
    "np.atleast_3d({0})", "np.atleast_2d({0}[0])", "np.diag({0})", "np.diagonal({0})",
    "np.reshape({0}[::2, ::-1], [8])", "np.reshape({0} > 3, [12])", "np.transpose({0}.T)",
    "np.reshape({0}.T, [3, 4])", "np.expand_dims({0}[0, :0], axis=1)",
)  # fmt: skip
"""Of an array of NumPy's, (3, 4)."""

SEVERAL = ("np.split({0}, 3)", "np.split({0}, [1, 2])", "np.hsplit({0}, 2)", "np.vsplit({0}, 3)")

MADE = (
    "np.zeros([2, 3])", "np.ones([2, 3], dtype=int)", "np.full([2, 2], 3.0)", "np.zeros([])",
    "np.zeros(shape=[2, 2])", "np.zeros_like(a, shape=[2])", "np.ones([np.int64(2), 3])",
    "np.full([2], 1, dtype='i1')", "np.zeros([0, 3])",
)  # fmt: skip

WRONG = (
    "np.reshape(a, [5])", "np.reshape(a, [2.5, 2])", "np.transpose(a, [0, 0])",
    "np.transpose(a, axes=[0])", "np.expand_dims(a, axis=9)", "np.squeeze(a, axis=0)",
    "np.broadcast_to(a, [2, 2])", "np.split(a, 5)", "np.zeros([2, -1])", "np.zeros([2.5])",
    "np.zeros([[1]])", "np.ones(['a'])", "np.swapaxes(a, 0, axis=1)",
)  # fmt: skip


def values() -> np.ndarray:
    return np.arange(12.0).reshape(3, 4)


def described(array: Any) -> Any:
    shown = np.asarray(array)
    flags = array.flags.writeable, array.flags.c_contiguous, array.flags.f_contiguous
    return str(array.dtype), array.shape, array.strides, flags, shown.tolist()


@compiled
@pytest.mark.parametrize("call", ONE)
def test_a_view_of_numpys_array_is_made_at_the_call(xp: ModuleType, call: str) -> None:
    a = values()
    text = call.format("a")
    expected = eval(text, {"np": np, "a": a})
    eval(text, {"np": xp, "a": a})
    before = xp.stats()["nodes_recorded"]
    made = eval(text, {"np": xp, "a": a})
    assert xp.stats()["nodes_recorded"] == before
    assert type(made) is xp.ndarray
    assert described(made) == described(expected)


@pytest.mark.parametrize("call", [*ONE, *SEVERAL])
def test_a_view_of_numpys_array_is_a_snapshot(xp: ModuleType, call: str) -> None:
    a = values()
    made = eval(call.format("a"), {"np": xp, "a": a})
    expected = eval(call.format("a"), {"np": np, "a": values()})
    a += 100
    parts, known = (made, expected) if type(made) is list else ([made], [expected])
    for part, other in zip(parts, known, strict=True):
        assert np.asarray(part).tolist() == other.tolist()


@compiled
@pytest.mark.parametrize("call", SEVERAL)
def test_parts_of_numpys_array_are_made_at_the_call(xp: ModuleType, call: str) -> None:
    a = values()
    text = call.format("a")
    expected = eval(text, {"np": np, "a": a})
    eval(text, {"np": xp, "a": a})
    before = xp.stats()["nodes_recorded"]
    made = eval(text, {"np": xp, "a": a})
    assert xp.stats()["nodes_recorded"] == before
    assert [described(part) for part in made] == [described(part) for part in expected]


@compiled
@pytest.mark.parametrize("call", [*ONE, *MADE])
def test_lists_and_names_are_taken_at_the_call(xp: ModuleType, call: str) -> None:
    text = call.format("a")
    names = {"np": xp, "a": xp.array(values())}
    expected = eval(text, {"np": np, "a": values()})
    eval(text, names)
    before = xp.stats()["nodes_recorded"]
    made = eval(text, names)
    assert xp.stats()["nodes_recorded"] == before
    assert described(made) == described(expected)


@pytest.mark.parametrize("call", WRONG)
@pytest.mark.parametrize("of_numpy", [True, False])
def test_wrong_shapes_raise_numpys_errors(xp: ModuleType, call: str, of_numpy: bool) -> None:
    with pytest.raises(Exception) as theirs:  # noqa: PT011 (NumPy says which)
        eval(call, {"np": np, "a": values()})
    with pytest.raises(type(theirs.value)):
        eval(call, {"np": xp, "a": values() if of_numpy else xp.array(values())})


@pytest.mark.parametrize("name", ["split", "array_split", "hsplit", "vsplit", "dsplit"])
@pytest.mark.parametrize("given", [[1, 2, 3, 4], [[1, 2], [3, 4]], [[[1, 2], [3, 4]]], 3])
def test_lists_are_split_where_numpy_does(xp: ModuleType, name: str, given: Any) -> None:
    answers = []
    for module in (np, xp):
        try:
            answers.append([part.tolist() for part in getattr(module, name)(given, 2)])
        except (AttributeError, TypeError, ValueError) as error:
            answers.append(type(error))
    assert answers[0] == answers[1]
