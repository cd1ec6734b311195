"""Results lie in memory as NumPy's do: the axes in the same order, so that strides, flags and what
is a view agree, whatever the order of the operands' axes.

Nothing has to be computed to know that; the values are compared for one of the layouts.
"""

from __future__ import annotations

import copy
import itertools
import pickle
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.support.agreement import Batch, error_of
from tests.support.hostile import ordinary
from tests.support.rounds import HERE, covering

Call = Callable[[ModuleType, Any], Any]

TWO, THREE, FOUR = (ordinary(n, (2, 3, 4, 5)[-n:], "float64") for n in (2, 3, 4))
COMPUTED = "permuted and cut"  # the layout whose values are compared too


def layouts(m: ModuleType) -> Iterator[tuple[str, Any]]:
    """Arrays of two to four axes, by name, whose axes lie in every kind of order."""
    two, three, four = m.array(TWO), m.array(THREE), m.array(FOUR)
    yield "C", two
    yield "transposed", two.T
    yield "Fortran", m.asfortranarray(two)
    yield "from a Fortran array of the host", m.array(np.asfortranarray(TWO))
    yield "from a permuted array of the host", m.array(THREE.transpose(2, 0, 1)[::2])
    yield "every second row", two.T[::2]
    yield "flipped", two.T[:, ::-1]
    yield "stretched rows", m.broadcast_to(two[0], (3, 5))
    yield "stretched columns", m.broadcast_to(two[0], (3, 5)).T
    yield "one column", two[:, :1].T
    yield "nothing", two[:0].T
    for axes in itertools.permutations(range(3)):
        yield f"permuted {axes}", three.transpose(axes)
    yield "permuted and cut", three.transpose(2, 0, 1)[::2, :, ::-1]
    yield "stretched between", m.broadcast_to(two.T[:, None, :], (5, 2, 4))
    yield "stretched at the end", m.broadcast_to(three[:, :1].transpose(2, 0, 1), (5, 3, 2))
    yield "all in Fortran order", m.array(THREE, order="F")
    yield "four axes (0, 3, 1, 2)", four.transpose(0, 3, 1, 2)
    yield "four axes (3, 1, 0, 2)", four.transpose(3, 1, 0, 2)
    yield "four axes cut", four.transpose(2, 3, 1, 0)[1:, ::-2]
    yield "integers", two.T.astype("int32")


def form(array: Any) -> Any:
    """What shows of the order: shape, strides of axes longer than 1, contiguity."""
    if type(array) is int:  # of `count_nonzero`, which gives a scalar in later releases
        array = np.int64(array)
    strides = None
    if 0 not in array.shape:
        strides = tuple([s for s, n in zip(array.strides, array.shape, strict=True) if n != 1])
    return array.shape, strides, array.flags.c_contiguous, array.flags.f_contiguous


def compare(xp: ModuleType, calls: dict[str, Call], except_for: tuple[str, ...] = (),
            ulp: float = 16) -> None:
    """Every call on every layout under both libraries; `except_for` names layouts left out."""
    wrong = []
    batch = Batch(xp)
    for label, call in calls.items():
        for (layout, expected), (_, actual) in zip(layouts(np), layouts(xp), strict=True):
            if layout in except_for or error_of(lambda c=call, x=expected: c(np, x)):
                continue
            wanted, got = call(np, expected), call(xp, actual)
            if form(got) != form(wanted):
                wrong.append(f"{label} of {layout}: {form(got)}, NumPy {form(wanted)}")
            if layout == COMPUTED:
                batch.same(f"{label} of {layout}", lambda m, c=call: c(
                    m, next(x for name, x in layouts(m) if name == COMPUTED)), ulp=ulp)
    assert not wrong, f"{len(wrong)} differ\n" + "\n".join(wrong[:30])
    batch.check()


def reductions(names: str) -> dict[str, Call]:
    """The reductions over several axes, with and without `keepdims`."""
    return {f"{name} axis={axis} keepdims={keep}":
            lambda m, x, n=name, a=axis, k=keep: getattr(m, n)(
                x, axis=a, **({"keepdims": True} if k else {}))
            for name, axis, keep in covering(
                names.split(), (None, 0, 1, -1, (0, 1), (0, -1), ()), (False, True),
                key=(names, HERE), allows=has_reduction)}


def has_reduction(name: str, axis: Any, keep: bool) -> bool:
    """Whether NumPy's function takes these."""
    if name.startswith("cum") and keep:
        return False
    return not (isinstance(axis, tuple) and name.startswith(("arg", "cum")))


@pytest.mark.parametrize("names", ["sum max any", "mean var", "argmin count_nonzero ptp",
                                   "nansum nanmean nanvar nanmax", "average median cumsum"])
def test_reductions_keep_the_order_of_the_axes(names: str, xp: ModuleType) -> None:
    compare(xp, reductions(names))


def test_options_of_reductions_keep_the_order_of_the_axes(xp: ModuleType) -> None:
    compare(xp, {
        "dtype": lambda m, x: m.sum(x, axis=-1, dtype="float32"),
        "initial": lambda m, x: m.sum(x, axis=0, initial=2, keepdims=True),
        "where": lambda m, x: m.sum(x, axis=0, where=x > 1, keepdims=True),
        "where in C order": lambda m, x: m.sum(x, axis=-1, where=m.ones(x.shape, bool)),
        "where of one row": lambda m, x: m.mean(x, axis=0, where=m.ones(x.shape[-1], bool)),
        "std with ddof": lambda m, x: m.std(x, axis=-1, ddof=1, keepdims=True),
        "var with a mean": lambda m, x: m.var(x, axis=0, mean=m.mean(x, axis=0, keepdims=True)),
        "weights": lambda m, x: m.average(x, axis=0, weights=m.ones(x.shape)),
        "weights in its order": lambda m, x: m.average(x, axis=-1, weights=x * x + 1),
        "add.reduce": lambda m, x: m.add.reduce(x, axis=-1, keepdims=True),
        "out": lambda m, x: m.sum(x, axis=0, out=m.zeros(x.shape[1:], order="F")),
        "mean out": lambda m, x: m.mean(x, axis=0, out=m.zeros(x.shape[1:], order="F")),
    })


def test_ufuncs_keep_an_order_that_the_operands_agree_on(xp: ModuleType) -> None:
    compare(xp, {
        "negative": lambda m, x: -x, "isnan": lambda m, x: m.isnan(x),
        "number": lambda m, x: x + 1, "itself": lambda m, x: x * x,
        "C order": lambda m, x: x + m.ones(x.shape),
        "after C order": lambda m, x: m.ones(x.shape) - x,
        "Fortran order": lambda m, x: x + m.ones(x.shape, order="F"),
        "one row": lambda m, x: x + m.ones(x.shape[-1:]),
        "one column": lambda m, x: x * m.ones((x.shape[0],) + (1,) * (x.ndim - 1)),
        "more axes": lambda m, x: x + m.ones((2,) + (1,) * x.ndim),
        "host array": lambda m, x: x + np.ones(x.shape),
        "host array in Fortran order": lambda m, x: x + np.ones(x.shape, order="F"),
        "list": lambda m, x: x + np.ones(x.shape).tolist(),
        "0-d": lambda m, x: x + m.array(2.0),
        "two results": lambda m, x: m.divmod(x, 2)[1],
        "outer": lambda m, x: m.subtract.outer(x, m.ones(2)),
        **{f"order={o}": lambda m, x, o=o: m.add(x, 1, order=o) for o in "CFAKf"},
        "order=A of two": lambda m, x: m.add(x, m.ones(x.shape, order="F"), order="A"),
    }, except_for=("nothing",))


def test_copies_and_arrays_like_others_lie_as_order_says(xp: ModuleType) -> None:
    calls: dict[str, Call] = {
        "copy()": lambda m, x: x.copy(), "np.copy": lambda m, x: m.copy(x),
        "like, another shape": lambda m, x: m.empty_like(x, shape=(*x.shape[:-1], 6)) * 0,
        "like, another rank": lambda m, x: m.zeros_like(x, shape=(4, 5)),
        "like, another dtype": lambda m, x: m.zeros_like(x, dtype="int16"),
        "like a host array": lambda m, x: m.ones_like(np.asarray(x)),
        "asfortranarray": lambda m, x: m.asfortranarray(x),
        "ascontiguousarray": lambda m, x: m.ascontiguousarray(x),
        "require": lambda m, x: m.require(x, requirements="F"),
        "deepcopy": lambda m, x: copy.deepcopy(x), "copy.copy": lambda m, x: copy.copy(x),
        "pickle": lambda m, x: pickle.loads(pickle.dumps(x)),
        "through the host": lambda m, x: m.asarray(np.asarray(x + 0)),
        "imag": lambda m, x: x.imag,
    }
    for o in "CFAK":
        calls |= {
            f"astype {o}": lambda m, x, o=o: x.astype("float32", order=o),
            f"astype without copy {o}": lambda m, x, o=o: x.astype(x.dtype, order=o, copy=False),
            f"copy {o}": lambda m, x, o=o: x.copy(order=o),
            f"array {o}": lambda m, x, o=o: m.array(x, order=o),
            f"asarray {o}": lambda m, x, o=o: m.asarray(x, order=o),
            f"zeros_like {o}": lambda m, x, o=o: m.zeros_like(x, order=o),
            f"full_like {o}": lambda m, x, o=o: m.full_like(x, 3, order=o),
            f"full_like of an array {o}": lambda m, x, o=o: m.full_like(
                x, m.arange(x.shape[-1]), order=o),
            f"flatten {o}": lambda m, x, o=o: x.flatten(order=o),
        }
        if o != "K":
            calls[f"reshape {o}"] = lambda m, x, o=o: x.reshape(x.shape[::-1], order=o)
    compare(xp, calls)


def test_ravel_is_a_view_where_numpys_is(xp: ModuleType) -> None:
    compare(xp, {f"ravel {o}": lambda m, x, o=o: x.ravel(order=o) for o in "CFAK"})
    for (layout, expected), (_, actual) in zip(layouts(np), layouts(xp), strict=True):
        for order, before in itertools.product("CFAK", (lambda x: x + 0, lambda x: x.mean(0))):
            is_view = before(expected).ravel(order).base is not None
            assert (before(actual).ravel(order).base is not None) == is_view, (layout, order)


def test_choosing_joining_and_moving_keep_the_order_of_the_axes(xp: ModuleType) -> None:
    calls: dict[str, Call] = {
        "where": lambda m, x: m.where(x > 1, x, -x), "where 0": lambda m, x: m.where(x > 1, x, 0),
        "where numbers": lambda m, x: m.where(x > 1, 1.0, 0.0),
        "where in C order": lambda m, x: m.where(m.ones(x.shape, bool), x, m.ones(x.shape)),
        "clip": lambda m, x: m.clip(x, -1, 5),
        "clip in C order": lambda m, x: m.clip(x, m.ones(x.shape), 5),
        "round": lambda m, x: m.round(x, 1), "rint": lambda m, x: x.round(),
        "nan_to_num": lambda m, x: m.nan_to_num(x), "sinc": lambda m, x: m.sinc(x),
        "isclose": lambda m, x: m.isclose(x, x), "tril": lambda m, x: m.tril(x),
        "select": lambda m, x: m.select([x > 3, x > 1], [x, x * 2], 0),
        "sort of all": lambda m, x: m.sort(x, axis=None),
        "take of all": lambda m, x: m.take(x, [0, 0]),
        "dstack": lambda m, x: m.dstack([x, x]), "vstack": lambda m, x: m.vstack([x, x]),
    }
    for axis in (0, -1):
        calls |= {
            f"sort {axis}": lambda m, x, a=axis: m.sort(x, axis=a),
            f"argsort {axis}": lambda m, x, a=axis: m.argsort(x, axis=a, kind="stable"),
            f"take {axis}": lambda m, x, a=axis: m.take(x, [0, 0], axis=a),
            f"concatenate {axis}": lambda m, x, a=axis: m.concatenate([x, x], axis=a),
            f"concatenate C {axis}": lambda m, x, a=axis: m.concatenate(
                [x, m.ones(x.shape)], axis=a),
            f"stack {axis}": lambda m, x, a=axis: m.stack([x, x], axis=a),
            f"repeat {axis}": lambda m, x, a=axis: m.repeat(x, 2, axis=a),
            f"roll {axis}": lambda m, x, a=axis: m.roll(x, 1, axis=a),
            f"diff {axis}": lambda m, x, a=axis: m.diff(x, axis=a),
            f"gradient {axis}": lambda m, x, a=axis: m.gradient(x, axis=a),
            f"maximum.accumulate {axis}": lambda m, x, a=axis: m.maximum.accumulate(x, axis=a),
        }
    compare(xp, calls)
