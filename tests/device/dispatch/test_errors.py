"""What NumPy refuses is refused at the same call, in NumPy's class; earlier arrays stay usable.

Each case runs under NumPy first, which decides the class. Nothing is evaluated here: an error that
came at evaluation would be too late.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.support.agreement import assert_bitwise, assert_same_error, error_of

Case = Callable[[Any], object]


def x(m: Any, *shape: int, dtype: str = "float64") -> Any:
    return m.ones(shape or (3, 4), dtype)


def _iadd(a: Any, b: Any) -> Any:
    a += b
    return a


def _itruediv(a: Any, b: Any) -> Any:
    a /= b
    return a


CASES: dict[str, Case] = {
    # two mistakes: NumPy names the one that it meets first
    "reduceat: texts, and a bound outside": lambda m: m.equal.reduceat(
        m.array(["a", "b", "c"]), m.array([0, 9])),
    "at: a place outside, and of texts": lambda m: m.add.at(
        x(m, 3), m.array([9]), m.array(["a"])),
    "outer: ragged, and an unknown keyword": lambda m: m.logical_and.outer(
        x(m, 2, dtype="bool"), [[1], [1, 2]], keepdims=None),
    "outer: an unknown keyword": lambda m: m.add.outer(x(m, 3), [1, 2], axis=0),
    "outer: a text": lambda m: m.subtract.outer(x(m, 3), "a"),
    # of arrays too large to ask NumPy on others of their shape
    "split: parts of a half": lambda m: m.split(m.arange(200_000), 3.5),
    "average: weights of sum zero": lambda m: m.average(
        m.arange(200_000.0), weights=m.arange(-100_000.0, 100_000) + 0.5),
    "average: weights of sum zero in one column": lambda m: m.average(
        m.ones((70_000, 3)), 0, weights=m.ones((70_000, 3)) * m.arange(3)),
    # shapes
    "add: shapes": lambda m: x(m, 3) + x(m, 4),
    "add: shapes in two axes": lambda m: x(m, 2, 3) + x(m, 3, 2),
    "where: shapes": lambda m: m.where(x(m, 3) > 0, x(m, 2), 1),
    "clip: shapes": lambda m: m.clip(x(m, 3), x(m, 2), 1),
    "add: in-place would grow": lambda m: _iadd(x(m, 3), x(m, 2, 3)),
    "add: in-place shapes": lambda m: _iadd(x(m, 3), x(m, 4)),
    "out: wrong shape": lambda m: m.add(x(m, 3), 1, out=m.zeros(4)),
    "out: too small": lambda m: m.add(x(m, 2, 3), 1, out=m.zeros(3)),
    "out: not an array": lambda m: m.add(x(m), 1, out=[1, 2]),
    "where=: not bool": lambda m: m.add(x(m), 1, out=x(m), where=m.ones((3, 4), "float64")),
    "where=: shape": lambda m: m.add(x(m), 1, out=x(m), where=m.ones(5, "bool")),
    "reshape: size": lambda m: x(m).reshape(5, 5),
    "reshape: two unknown": lambda m: x(m).reshape(-1, -1),
    "reshape: unknown does not divide": lambda m: x(m).reshape(5, -1),
    "reshape: text": lambda m: x(m).reshape("a"),
    "broadcast_to: shapes": lambda m: m.broadcast_to(x(m, 3), (4,)),
    "broadcast_to: fewer axes": lambda m: m.broadcast_to(x(m, 3, 4), (4,)),
    "broadcast_arrays": lambda m: m.broadcast_arrays(x(m, 3), x(m, 4)),
    "concatenate: shapes": lambda m: m.concatenate([x(m, 2, 3), x(m, 2, 4)]),
    "concatenate: axes": lambda m: m.concatenate([x(m, 2, 3), x(m, 2)]),
    "concatenate: nothing": lambda m: m.concatenate([]),
    "concatenate: 0-d": lambda m: m.concatenate([m.array(1), m.array(2)]),
    "concatenate: axis": lambda m: m.concatenate([x(m, 3), x(m, 3)], axis=1),
    "stack: shapes": lambda m: m.stack([x(m, 3), x(m, 4)]),
    "stack: nothing": lambda m: m.stack([]),
    "matmul: shapes": lambda m: x(m, 3, 4) @ x(m, 3, 4),
    "matmul: 0-d": lambda m: x(m, 3) @ 2,
    "dot: shapes": lambda m: m.dot(x(m, 3), x(m, 4)),
    "zeros: negative": lambda m: m.zeros(-1),
    "zeros: negative axis": lambda m: m.zeros((2, -1)),
    "zeros: float": lambda m: m.zeros(2.5),
    "ones: text": lambda m: m.ones("a"),
    "full: value's shape": lambda m: m.full(3, [1, 2]),
    "linspace: negative": lambda m: m.linspace(0, 1, -1),
    "arange: no step": lambda m: m.arange(0, 5, 0),
    "arange: nothing": lambda m: m.arange(),
    "arange: too long": lambda m: m.arange(0, 1e30),
    "eye: negative": lambda m: m.eye(-2),
    "array: ragged": lambda m: m.array([[1, 2], [3]]),
    "transpose: axes": lambda m: x(m).transpose(0),
    "transpose: repeated": lambda m: x(m).transpose(0, 0),
    "squeeze: not 1": lambda m: x(m).squeeze(0),
    "repeat: negative": lambda m: m.repeat(x(m, 3), -1),
    "split: uneven": lambda m: m.split(x(m, 5), 2),
    "diagonal: 1-d": lambda m: x(m, 3).diagonal(),
    "pad: negative": lambda m: m.pad(x(m, 3), -1),
    "setitem: shape": lambda m: x(m).__setitem__(0, x(m, 3)),
    "setitem: more axes": lambda m: x(m).__setitem__(0, x(m, 2, 4)),
    "setitem: list": lambda m: x(m).__setitem__(0, [1, 2]),
    # axes
    "sum: axis": lambda m: x(m).sum(axis=2),
    "sum: negative axis": lambda m: m.sum(x(m), axis=-3),
    "sum: axis twice": lambda m: m.sum(x(m), axis=(0, 0)),
    "sum: axis twice from both ends": lambda m: m.sum(x(m), axis=(0, -2)),
    "sum: float axis": lambda m: m.sum(x(m), axis=1.5),
    "sum: axis of 0-d": lambda m: m.sum(m.array(1.0), axis=1),
    "mean: axis": lambda m: m.mean(x(m), axis=5),
    "argmax: axis": lambda m: m.argmax(x(m), axis=2),
    "argmax: tuple": lambda m: m.argmax(x(m), axis=(0, 1)),
    "swapaxes: axis": lambda m: m.swapaxes(x(m), 0, 2),
    "moveaxis: axis": lambda m: m.moveaxis(x(m), 3, 0),
    "moveaxis: lengths": lambda m: m.moveaxis(x(m), (0, 1), 0),
    "expand_dims: axis": lambda m: m.expand_dims(x(m), 4),
    "flip: axis": lambda m: m.flip(x(m), axis=2),
    "roll: axis": lambda m: m.roll(x(m), 1, axis=2),
    "squeeze: axis": lambda m: m.squeeze(x(m), axis=7),
    "stack: axis": lambda m: m.stack([x(m, 3)], axis=3),
    "rot90: 1-d": lambda m: m.rot90(x(m, 3)),
    "cumsum: axis": lambda m: m.cumsum(x(m), axis=2),
    # reductions of nothing
    "min of nothing": lambda m: m.min(m.zeros(0)),
    "max of nothing over an axis": lambda m: m.zeros((0, 3)).max(axis=0),
    "argmin of nothing": lambda m: m.argmin(m.zeros(0)),
    "argmax of nothing over an axis": lambda m: m.argmax(m.zeros((3, 0)), axis=1),
    "min: where without initial": lambda m: m.min(x(m, 3), where=m.array([True, False, True])),
    "sum: out shape": lambda m: m.sum(x(m), axis=0, out=m.zeros(3)),
    # indices
    "index: out of range": lambda m: x(m)[3],
    "index: negative out of range": lambda m: x(m)[:, -5],
    "index: too many": lambda m: x(m)[0, 0, 0],
    "index: 0-d": lambda m: m.array(1.0)[0],
    "index: float": lambda m: x(m)[1.0],
    "index: text": lambda m: x(m)["a"],
    "index: two ellipses": lambda m: x(m)[..., 0, ...],
    "index: float in a slice": lambda m: x(m)[0.5:2],
    "index: zero step": lambda m: x(m)[::0],
    "index: object": lambda m: x(m)[object()],
    "index: list out of range": lambda m: x(m)[[0, 3]],
    "index: float list": lambda m: x(m)[[0.5]],
    "index: mask of another length": lambda m: x(m)[np.array([True, False])],
    "index: masks and lists that do not meet": lambda m: x(m)[[0, 1, 2], [0, 1]],
    "setitem: out of range": lambda m: x(m).__setitem__(3, 0),
    "setitem: too many": lambda m: x(m).__setitem__((0, 0, 0), 0),
    "setitem: mask and too many values": lambda m: x(m, 3).__setitem__(
        np.array([True, False, False]), [1, 2]),
    "take: out of range": lambda m: m.take(x(m, 3), 5),
    "delete item": lambda m: x(m).__delitem__(0),
    # dtypes and casting
    "in place: float into int": lambda m: _iadd(x(m, 3, dtype="int32"), 1.5),
    "in place: complex into float": lambda m: _iadd(x(m, 3), 1j),
    "in place: int array += float array": lambda m: _iadd(x(m, 3, dtype="int32"), x(m, 3)),
    "in place: int /=": lambda m: _itruediv(x(m, 3, dtype="int32"), 2),
    "in place: bool += int": lambda m: _iadd(x(m, 3, dtype="bool"), 2),
    "in place: uint8 += int64 array": lambda m: _iadd(x(m, 3, dtype="uint8"),
                                                     x(m, 3, dtype="int64")),
    "out: float into int": lambda m: m.sqrt(x(m, 3), out=m.zeros(3, "int32")),
    "number too large for uint8": lambda m: x(m, 3, dtype="uint8") + 300,
    "negative number for uint8": lambda m: x(m, 3, dtype="uint8") * -1,
    "number too large for int64": lambda m: x(m, 3, dtype="int64") + 2 ** 70,
    "setitem: number too large": lambda m: x(m, 3, dtype="int8").__setitem__(0, 300),
    "setitem: complex": lambda m: x(m, 3).__setitem__(0, 1j),
    "setitem: text": lambda m: x(m, 3).__setitem__(0, "a"),
    "setitem: None": lambda m: x(m, 3, dtype="int32").__setitem__(0, None),
    "bool minus bool": lambda m: x(m, 3, dtype="bool") - x(m, 3, dtype="bool"),
    "minus bool": lambda m: -x(m, 3, dtype="bool"),
    "invert float": lambda m: ~x(m, 3),
    "shift float": lambda m: x(m, 3) << 1,
    "and of floats": lambda m: x(m, 3) & x(m, 3),
    "gcd of floats": lambda m: m.gcd(x(m, 3), x(m, 3)),
    "floor of complex": lambda m: m.floor(x(m, 3, dtype="complex64")),
    "arctan2 of complex": lambda m: m.arctan2(x(m, 3, dtype="complex64"), 1),
    "remainder of complex": lambda m: x(m, 3, dtype="complex64") % 2,
    "isnan of text": lambda m: m.isnan("a"),
    "add None": lambda m: x(m, 3) + None,
    "add text": lambda m: x(m, 3) + "a",
    "sqrt of text": lambda m: m.sqrt("a"),
    "dtype: unknown": lambda m: x(m, 3).astype("no such dtype"),
    "dtype: unknown in zeros": lambda m: m.zeros(3, "float33"),
    "dtype=: no loop": lambda m: m.sqrt(x(m, 3), dtype="int32"),
    "casting: safe": lambda m: x(m, 3).astype("float32", casting="safe"),
    "casting: same_kind": lambda m: x(m, 3).astype("int32", casting="same_kind"),
    "casting: no such": lambda m: x(m, 3).astype("int32", casting="perhaps"),
    "ufunc casting: no": lambda m: m.add(x(m, 3), x(m, 3, dtype="float32"), casting="no"),
    "array(copy=False) of a list": lambda m: m.array([1, 2], copy=False),
    "asarray(copy=False) of a list": lambda m: m.asarray([1, 2], copy=False),
    # calls
    "sin: no operand": lambda m: m.sin(),
    "sin: too many": lambda m: m.sin(x(m), x(m), x(m)),
    "add: one operand": lambda m: m.add(x(m)),
    "unknown keyword": lambda m: m.add(x(m), 1, colour="red"),
    "out twice": lambda m: m.sin(x(m), x(m), out=x(m)),
    "reduce of a unary": lambda m: m.sin.reduce(x(m)),
    "unknown attribute": lambda m: x(m).no_such_attribute,
    "unknown function": lambda m: m.no_such_function,
    "set an attribute": lambda m: setattr(x(m), "size", 3),
    "shape that does not fit": lambda m: setattr(x(m), "shape", (5, 5)),
    # conversions
    "bool of many": lambda m: bool(x(m)),
    "if of many": lambda m: 1 if x(m) > 0 else 2,
    "float of many": lambda m: float(x(m)),
    "int of many": lambda m: int(x(m)),
    "index of many": lambda m: [1, 2][x(m, 2, dtype="int64")],
    "index of a float": lambda m: [1, 2][m.array(1.0)],
    "item of many": lambda m: x(m).item(),
    "item out of range": lambda m: x(m).item(99),
    "int of NaN": lambda m: int(m.array(np.nan)),
    "float of complex text": lambda m: float(m.array("a")),
    "len of 0-d": lambda m: len(m.array(1.0)),
    "iterate 0-d": lambda m: list(m.array(1.0)),
    "hash": lambda m: hash(x(m)),
    "contains a shape that does not fit": lambda m: x(m, 2, dtype="int32") in x(m, 3),
    "format of many": lambda m: f"{x(m):.3f}",
}


@pytest.mark.parametrize("name", CASES)
def test_numpys_error_is_raised_at_the_call(name: str, xp: ModuleType) -> None:
    assert_same_error(CASES[name], xp)


def test_in_place_casting_errors_are_ufunc_type_errors(xp: ModuleType) -> None:
    from numpy._core._exceptions import UFuncTypeError

    error = error_of(lambda: _iadd(xp.ones(3, "int32"), 1.5))
    assert isinstance(error, UFuncTypeError)
    assert "int32" in str(error)
    assert "float64" in str(error)


def test_a_refused_call_leaves_its_operands_as_they_were(xp: ModuleType) -> None:
    a, b = xp.arange(6.0).reshape(2, 3), xp.arange(4)
    pending = a * 2 + 1
    for call in (lambda: _iadd(a, b), lambda: _iadd(b, 1.5), lambda: a.__setitem__(0, b),
                 lambda: a.__setitem__(7, 1), lambda: xp.add(a, b), lambda: xp.sum(a, axis=5),
                 lambda: xp.add(a, 1, out=b), lambda: b.fill("a"), lambda: a.fill(1j)):
        assert error_of(call) is not None
    assert_bitwise(a, np.arange(6.0).reshape(2, 3))
    assert_bitwise(b, np.arange(4))
    assert_bitwise(pending, np.arange(6.0).reshape(2, 3) * 2 + 1)
    b += 1
    assert_bitwise(b, np.arange(4) + 1)


@pytest.mark.clfuse_only
def test_an_array_larger_than_the_device_is_an_allocation_error(xp: ModuleType) -> None:
    earlier = xp.arange(10) + 1
    limit = xp.get_device().traits.max_alloc_nbytes
    huge = xp.sort(xp.ones(limit // 8 + 1000) * 2)  # which is done as a whole
    with pytest.raises(xp.AllocationError, match=r"\d") as caught:
        xp.evaluate(huge)
    assert isinstance(caught.value, MemoryError)
    del huge
    assert_bitwise(earlier, np.arange(10) + 1)
    assert_bitwise(earlier * 2, (np.arange(10) + 1) * 2)


@pytest.mark.clfuse_only
def test_a_large_array_that_is_never_stored_needs_no_memory(xp: ModuleType) -> None:
    count = xp.get_device().traits.max_alloc_nbytes // 8 + 1000
    assert int(xp.full(100_000_000, 3, "int8").sum()) == 300_000_000
    assert xp.zeros(count).shape == (count,)


@pytest.mark.clfuse_only
@pytest.mark.parametrize("spec", ["no such device", "99", "99:99", "", "0:99"])
def test_an_unknown_device_is_an_error_that_lists_what_there_is(spec: str, xp: ModuleType) -> None:
    current = xp.get_device()
    if spec == "":
        return
    with pytest.raises(xp.DeviceError) as caught:
        xp.set_device(spec)
    assert isinstance(caught.value, RuntimeError)
    assert spec in str(caught.value)
    with pytest.raises(xp.DeviceError), xp.device(spec):
        pass
    assert xp.get_device() is current


@pytest.mark.clfuse_only
@pytest.mark.parametrize(("name", "value"), [
    ("fusion", "maybe"), ("fallback", "never"), ("fp", "exact"), ("schedule", "tpu"),
    ("max_nodes", "many"), ("debug", "perhaps"), ("no_such_setting", 1)])
def test_a_bad_setting_is_refused(name: str, value: object, xp: ModuleType) -> None:
    with pytest.raises((xp.SettingError, TypeError)) as caught, xp.config.override(**{name: value}):
        pass
    assert name.upper().replace("_", "") in str(caught.value).upper().replace("_", "")


@pytest.mark.clfuse_only
def test_a_bad_variable_names_itself_and_its_choices(xp: ModuleType,
                                                     monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLFUSE_FUSION", "perhaps")
    try:
        with pytest.raises(ValueError, match="CLFUSE_FUSION") as caught:
            xp.config.reload()
            _ = xp.config.settings.fusion
        assert "perhaps" in str(caught.value)
        assert "off" in str(caught.value)
    finally:
        monkeypatch.undo()
        xp.config.reload()


@pytest.mark.parametrize("size", [4, 100_000])
@pytest.mark.parametrize(
    "name", "all any max min mean prod sum cumsum cumprod round std".split()
)
def test_an_unknown_argument_is_refused_in_the_functions_name(
    name: str, size: int, xp: ModuleType
) -> None:
    with pytest.raises(TypeError) as refused:
        getattr(xp, name)(xp.ones(size), nonsense=1)
    assert str(refused.value) == f"{name}() got an unexpected keyword argument 'nonsense'"


@pytest.mark.clfuse_only
@pytest.mark.parametrize("size", [4, 100_000])
@pytest.mark.parametrize("name", "ravel squeeze diagonal reshape swapaxes transpose".split())
def test_a_method_is_named_after_the_public_class(name: str, size: int, xp: ModuleType) -> None:
    with pytest.raises(TypeError, match=rf"^ndarray\.{name}\(\) got an unexpected keyword"):
        getattr(xp.ones((2, size)), name)(nonsense=1)
