"""Strided layouts: splitting a flat map into one an axis, and back."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clfuse.ir.layout import contiguous_strides, delinearize, linearize

UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""A busy machine draws its examples slowly, which says nothing about them."""

SHAPES = st.lists(st.integers(0, 5), min_size=0, max_size=4).map(tuple)


@st.composite
def views(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """An array of its own flat positions, and a random view of it by slicing and transposing."""
    shape = draw(st.lists(st.integers(1, 6), min_size=1, max_size=4).map(tuple))
    base = np.arange(int(np.prod(shape))).reshape(shape)
    view = base
    for axis, extent in enumerate(shape):
        start = draw(st.integers(0, extent - 1))
        stop = draw(st.integers(start + 1, extent))
        step = draw(st.sampled_from([1, 1, 2, 3, -1, -2]))
        index = [slice(None)] * view.ndim
        index[axis] = slice(start, stop)
        view = view[tuple(index)]
        index[axis] = slice(None, None, step)
        view = view[tuple(index)]
    return base, view.transpose(draw(st.permutations(range(view.ndim))))


@UNTIMED
@given(SHAPES)
def test_contiguous_strides_are_numpys_for_extents_above_one(shape: tuple) -> None:
    expected = [stride // 8 for stride in np.zeros(shape).strides]
    if 0 not in shape:
        for extent, ours, theirs in zip(shape, contiguous_strides(shape), expected, strict=True):
            assert ours == (theirs if extent > 1 else 0)


@UNTIMED
@given(views())
def test_every_slice_and_transpose_splits_into_maps_of_the_axes(pair: tuple) -> None:
    base, view = pair
    offset = int(view.flat[0])
    strides = tuple(stride // base.itemsize for stride in view.strides)
    axes = delinearize(base.shape, view.shape, offset, strides)
    assert axes is not None
    for index in itertools.product(*map(range, view.shape)):
        where = tuple(
            start + sum(c * i for c, i in zip(coefficients, index, strict=True))
            for start, coefficients in axes
        )
        assert base[where] == view[index]
    flat_offset, flat_strides = linearize(base.shape, axes, view.ndim)
    for index in itertools.product(*map(range, view.shape)):
        place = flat_offset + sum(s * i for s, i in zip(flat_strides, index, strict=True))
        assert place == view[index]


def test_a_map_that_leaves_its_axis_does_not_split() -> None:
    assert delinearize((4, 6), (24,), 0, (1,)) is None
    assert delinearize((4, 6), (2, 6), 3, (6, 1)) is None
