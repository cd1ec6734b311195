"""Which vectors of a GPU's maps are said to lie at multiples of their size: where one that is does
not, NVIDIA's devices fault."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from clfuse.codegen.kernels import render
from clfuse.ir import build
from clfuse.ir.nodes import Node
from clfuse.target.traits import DeviceTraits, with_schedule
from tests.support.recording import array, call, kernels, planned

GPU = with_schedule(DeviceTraits(kind="gpu", unified_memory=False), "gpu")
ON_A_CPU = with_schedule(DeviceTraits(), "gpu")


def source(node: Node, traits: DeviceTraits = GPU) -> str:
    (kernel,) = kernels(planned(node, traits=traits))
    return render(kernel, traits, lambda value: value).source


def aligned_loads(text: str) -> int:
    return text.count("(*(__global const ")


def aligned_stores(text: str) -> int:
    return text.count(" *(__global ")


@pytest.mark.parametrize(("dtype", "kind"), [
    (np.float32, "float4"), (np.float64, "double2"), (np.int8, "char16"), (np.uint16, "ushort8"),
    (np.int64, "long2"),
])
def test_whole_arrays_are_loaded_in_vectors_of_sixteen_bytes(dtype, kind) -> None:
    text = source(call("add", array(1000, dtype=dtype), array(1000, dtype=dtype)))
    assert text.count(f"(*(__global const {kind} *)(") == 2
    assert text.count(f" *(__global {kind} *)(") == 1
    assert "vload" not in text
    assert "vstore" not in text


@pytest.mark.parametrize("offset", range(9))
def test_a_view_is_loaded_so_at_a_multiple_of_the_vector(offset: int) -> None:
    view = build.view(array(1000, dtype=np.float32), (900,), offset, (1,))
    text = source(call("negative", view))
    assert aligned_loads(text) == (offset % 4 == 0)
    assert text.count("vload4") == (offset % 4 != 0)
    assert aligned_stores(text) == 1


@pytest.mark.parametrize("offset", range(9))
def test_backwards_the_last_lane_decides(offset: int) -> None:
    view = build.view(array(1000, dtype=np.float32), (900,), 900 + offset, (-1,))
    assert aligned_loads(source(call("negative", view))) == (offset % 4 == 3)


@pytest.mark.parametrize("stride", range(1000, 1009))
def test_all_rows_must_begin_so(stride: int) -> None:
    view = build.view(array(20 * 1100, dtype=np.float32), (20, 999), 0, (stride, 1))
    assert aligned_loads(source(call("negative", view))) == (stride % 4 == 0)


def test_elements_of_several_sizes_are_vectors_of_as_many_lanes() -> None:
    floats = [array(1000, dtype=np.float32) for _ in range(2)]
    text = source(call("where", array(1000, dtype=np.bool_), *floats, dtype=np.dtype("f4")))
    assert "(*(__global const uchar4 *)(" in text
    assert "(*(__global const float4 *)(" in text


def test_nothing_is_known_where_host_memory_may_be_a_buffer() -> None:
    text = source(call("negative", array(1000, dtype=np.float32)), ON_A_CPU)
    assert (aligned_loads(text), text.count("vload4"), text.count("vstore4")) == (0, 1, 1)
    assert ON_A_CPU.buffer_alignment == 1


def test_buffers_must_be_aligned_to_the_vector() -> None:
    text = source(call("negative", array(1000, dtype=np.float32)),
                  replace(GPU, buffer_alignment=8))
    assert aligned_loads(text) == 0
