"""Which vectors of a GPU's maps are said to lie at multiples of their size: where one that is does
not, NVIDIA's devices fault."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from clfuse.codegen.kernels import render
from clfuse.ir import build
from clfuse.ir.nodes import Node
from clfuse.schedule.records import Kernel
from clfuse.target.traits import DeviceTraits, apply_quirks, with_schedule
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
def test_rows_whose_results_begin_otherwise_are_loaded_in_parts(stride: int) -> None:
    view = build.view(array(20 * 1100, dtype=np.float32), (20, 1000), 0, (stride, 1))
    text = source(call("negative", view))
    assert aligned_loads(text) == (stride % 4 == 0)
    assert (aligned_stores(text), "lead" in text) == (1, False)


def test_rows_that_begin_alike_have_a_lead_each() -> None:
    old = array(20, 1003, dtype=np.float32)
    _, text = kernel_and_source(
        build.update(old, call("negative", build.view(old, (20, 900), 5, (1003, 1))), 5, (1003, 1)))
    assert "const int lead = (lead0 * (uint)i0 + lead1) & 3;" in text
    assert (aligned_loads(text), aligned_stores(text)) == (1, 1)
    assert "vload" not in text


@pytest.mark.parametrize("offset", range(1, 5))
def test_elements_before_the_first_vector_come_one_by_one(offset: int) -> None:
    old = array(1003, dtype=np.float32)
    kernel, text = kernel_and_source(
        build.update(old, call("negative", build.view(old, (900,), offset, (1,))),
                     offset, (1,)))
    assert kernel.lead == ((-offset % 4,) if offset % 4 else ())
    assert (aligned_loads(text), aligned_stores(text)) == (1, 1)


def test_single_elements_where_most_vectors_lie_otherwise() -> None:
    table = array(20, 1003, dtype=np.float32)
    parts = [build.view(table, (20, 1000), offset, (1003, 1)) for offset in (0, 1)]
    kernel, text = kernel_and_source(call("subtract", *parts))
    assert kernel.width == 1
    assert "vload" not in text


def test_whole_vectors_where_a_device_loads_them_from_anywhere() -> None:
    table = array(20, 1003, dtype=np.float32)
    parts = [build.view(table, (20, 1000), offset, (1003, 1)) for offset in (0, 1)]
    amd = replace(GPU, vendor="Advanced Micro Devices, Inc.")
    (kernel,) = kernels(planned(call("subtract", *parts), traits=apply_quirks(amd)))
    assert (kernel.width, kernel.lead) == (4, ())


def test_vectors_of_half_the_size_where_only_these_lie_so() -> None:
    table = array(20, 1002, dtype=np.float32)
    parts = [build.view(table, (20, 1000), offset, (1002, 1)) for offset in (0, 2)]
    kernel, text = kernel_and_source(call("subtract", *parts))
    assert kernel.width == 2
    assert (aligned_loads(text), aligned_stores(text)) == (2, 1)


def kernel_and_source(node: Node) -> tuple[Kernel, str]:
    *_, kernel = kernels(planned(node, traits=GPU))
    return kernel, render(kernel, GPU, lambda value: value).source


@pytest.mark.parametrize(("shape", "sizes", "group"), [
    ((1003,), (256,), (256,)),
    ((500, 1003), (256, 500), (256, 1)),
    ((500, 4), (1, 512), (1, 256)),
    ((10, 70000, 4), (1, 65535 // 256 * 256, 10), (1, 256, 1)),
    ((10, 20, 1003), (256, 20, 10), (256, 1, 1)),
    ((2, 3, 5, 7), (4, 8, 8), (4, 8, 8)),
    ((500, 1100), (288, 504), (32, 8)),
])
def test_a_work_item_for_each_vector(shape, sizes, group) -> None:
    padded = tuple(extent + 4 for extent in shape)
    strides = tuple(math.prod(padded[dim + 1:]) for dim in range(len(shape)))
    view = build.view(array(*padded, dtype=np.float32), shape, 0, strides)
    (kernel,) = kernels(planned(call("negative", view), traits=GPU))
    assert kernel.nd_range == (sizes, group)
    assert kernel.work_items == math.prod(sizes)


def test_values_that_fill_the_registers_have_fewer_lanes() -> None:
    inputs = [array(1000) for _ in range(24)]
    total = inputs[0]
    for other in inputs[1:]:
        total = call("add", call("sin", other), call("multiply", total, other))
    assert kernels(planned(call("add", inputs[0], inputs[1]), traits=GPU))[0].width == 2
    assert kernels(planned(total, traits=GPU))[0].width == 1  # 24 loads, which wait together
    assert kernels(planned(total, traits=replace(GPU, item_words=512)))[0].width == 2


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
