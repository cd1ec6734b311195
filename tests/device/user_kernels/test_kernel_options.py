"""Options and texts of kernels that somebody wrote: what is wrong is an error that names it, and
what one kernel defines means nothing in another."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import clfuse as cf

pytestmark = pytest.mark.clfuse_only

ONES = "__kernel void ones(__global float *x) { x[get_global_id(0)] = A; }"
ELEMENTWISE = ("T x", "T y", "y = x")


def fill(x: Any, i: Any) -> None:
    x[i] = 1


@pytest.mark.parametrize("group", [(8, 8), (64,), [8], 64.0, "64", None])
def test_a_group_is_a_number_of_work_items(group: Any) -> None:
    with pytest.raises(TypeError, match=r"group=.*expected the number of a group's work-items"):
        cf.kernel(group=group)(fill)


@pytest.mark.parametrize("name", ["f g", "", "f;", "1f", "é", "f\n", "f("])
def test_names_are_identifiers(name: str) -> None:
    for make in (
        lambda: cf.RawKernel(ONES, name),
        lambda: cf.ElementwiseKernel(*ELEMENTWISE, name),
        lambda: cf.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", name),
    ):
        with pytest.raises(ValueError, match="expected a C identifier"):
            make()


@pytest.mark.parametrize("wrong", [None, 3, b"f"])
def test_names_and_texts_are_str(wrong: Any) -> None:
    for make in (
        lambda: cf.RawKernel(ONES, wrong),
        lambda: cf.RawKernel(wrong, "ones"),
        lambda: cf.ElementwiseKernel(*ELEMENTWISE, wrong),
        lambda: cf.ElementwiseKernel(wrong, "T y", "y = 1"),
        lambda: cf.ElementwiseKernel("T x", "T y", wrong),
        lambda: cf.ReductionKernel("T x", "T y", wrong, "a + b", "y = a", "0"),
    ):
        with pytest.raises(TypeError, match="expected a str"):
            make()


@pytest.mark.parametrize(
    "option",
    ["-DA=1\r", "-DA=1\n", "-DA=1\n#define B", "-DA=1\\", "-DA=1//", "-DA=/*", "-D1",
     "-cl-std=CL3.0", "-DA\0", "-I /tmp", "-D\rA", "--A"],
)  # fmt: skip
def test_options_are_definitions_on_a_line_of_their_own(option: str) -> None:
    with pytest.raises(ValueError, match="-DNAME and -DNAME=value are known"):
        cf.RawKernel(ONES, "ones", options=(option,))


@pytest.mark.parametrize("options", ["-DA", None, (3,), 3])
def test_options_are_a_tuple_of_str(options: Any) -> None:
    with pytest.raises(TypeError, match="expected a tuple of str"):
        cf.RawKernel(ONES, "ones", options=options)


def test_sizes_of_launches_are_integers_that_drivers_count() -> None:
    kernel, x = cf.RawKernel(ONES, "ones", options=("-D A=2.f",)), cf.zeros(8, dtype="float32")
    for grid in ((8.0,), "8", None, ((8,),)):
        with pytest.raises(TypeError, match=r"grid is .*: expected one to three integers"):
            kernel(grid, (1,), (x,))
    with pytest.raises(TypeError, match="block is"):
        kernel((8,), "1", (x,))
    with pytest.raises(ValueError, match="a dimension at most"):
        kernel((1 << 40,), (1,), (x,))
    with pytest.raises(TypeError, match="args is a ndarray: expected a tuple"):
        kernel((8,), (1,), x)
    kernel([np.int64(8)], 1, [x])
    assert x.tolist() == [2] * 8


def test_macros_of_a_body_are_its_own(setting: Any) -> None:
    setting(host_us=0)
    square = cf.ElementwiseKernel(
        "T x", "T y", "#define STEP(v) ((v) * (v))\n#define x0 1\ny = STEP(x) + x0", "square")
    other = cf.ElementwiseKernel("T x", "T y", "#define STEP(v) ((v) / 2)\ny = STEP(x)", "other")
    uses = cf.ElementwiseKernel("T x", "T y", "y = STEP(x)", "uses")
    hides = cf.ElementwiseKernel("T x", "T y", "#define get_global_id 7\ny = x", "hides")
    x = cf.arange(5.0)
    assert other(square(x) + 1).tolist() == [1, 1.5, 3, 5.5, 9]
    assert (hides(x) + square(x)).tolist() == [1, 3, 7, 13, 21]
    with pytest.raises(cf.KernelBuildError):
        uses(square(x)).get()
