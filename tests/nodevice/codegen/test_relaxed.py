"""Which kernels ``CLFUSE_FP=fast`` may relax: what decides, rounds or adds up stays strict."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from clfuse.codegen.kernels import render
from clfuse.ir import build
from clfuse.ir.nodes import Node
from clfuse.target.traits import DeviceTraits
from tests.support.recording import BOOL, TRAITS, array, call, kernels, planned

HALF, SINGLE, INTEGER = np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.int32)


def relaxed(root: Node, traits: DeviceTraits = TRAITS) -> list[bool]:
    """For each kernel that computes `root` whether it may be relaxed."""
    return [render(kernel, traits, lambda value: value).relaxed
            for kernel in kernels(planned(root))]


def x(dtype: np.dtype = SINGLE) -> Node:
    return array(100, dtype=dtype)


@pytest.mark.parametrize("root", [
    call("add", call("sin", x()), call("multiply", x(), x())),
    build.cast(call("sqrt", x(np.dtype(np.float64))), SINGLE),
    call("where", call("less", x(INTEGER), x(INTEGER), dtype=BOOL), x(), x(), dtype=SINGLE),
    build.reduce("add", call("multiply", x(INTEGER), x(INTEGER)), (0,), np.dtype(np.int64)),
    call("exp", build.cast(x(INTEGER), SINGLE)),
], ids=["arithmetic", "narrower", "chosen by integers", "integer sum", "of integers"])
def test_what_only_calculates_may_be_relaxed(root: Node) -> None:
    assert all(relaxed(root))


@pytest.mark.parametrize("root", [
    call("add", x(HALF), x(HALF)), build.cast(x(), HALF), build.cast(x(HALF), SINGLE),
    build.reduce("add", x(), (0,), SINGLE), build.reduce("maximum", x(), (0,), SINGLE),
    build.arg_reduce("argmin", x(), (0,)),
    call("isnan", x(), dtype=BOOL), call("equal", x(), x(), dtype=BOOL),
    call("maximum", call("sin", x()), x()), call("floor", x()), build.cast(x(), INTEGER),
    build.cast(x(), BOOL), call("floor_divide", x(), x()),
    build.bitcast(call("add", x(), x()), INTEGER),
    call("multiply", *[x(np.dtype(np.complex64))] * 2), call("logaddexp", x(), x()),
], ids=["half", "to half", "from half", "sum", "maximum of all", "argmin", "isnan", "equal",
        "maximum", "floor", "to integer", "to bool", "floor_divide", "bits", "complex product",
        "logaddexp"])
def test_what_decides_rounds_or_adds_up_stays_strict(root: Node) -> None:
    assert not any(relaxed(root))


def test_what_stands_in_for_a_faulty_builtin_stays_strict() -> None:
    replaced = replace(TRAITS, expressions={("sin", "float32"): "circular_sin_{T}({0})"})
    assert relaxed(call("sin", x())) == [True]
    assert relaxed(call("sin", x()), replaced) == [False]
