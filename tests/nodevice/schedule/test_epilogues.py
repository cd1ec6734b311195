"""What follows a matrix product: on its registers where the product is a kernel of ours, in its
bytes where it is the host's BLAS."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from clfuse.ir import build
from clfuse.ir.nodes import Node
from clfuse.schedule.records import Kernel, LibraryCall
from clfuse.schedule.traffic import call_nbytes
from tests.support.recording import TRAITS, array, call, moved_nbytes, number, planned

GPU = replace(TRAITS, schedule="gpu")
N, K, M = 64, 32, 128
IN_AND_OUT = 8 * (N * K + K * M + M + N * M)


def product() -> Node:
    return build.library("matmul", (array(N, K), array(K, M)), (N, M), np.dtype(np.float64))


def activated(made: Node) -> Node:
    """maximum(made * 0.5 + bias, 0)"""
    scaled = call("add", call("multiply", made, number(0.5)), array(M))
    return call("maximum", scaled, number(0.0))


def test_a_gpu_computes_scale_bias_and_activation_at_the_store() -> None:
    schedule = planned(activated(product()), traits=GPU)
    (launch,) = schedule.launches
    assert isinstance(launch, LibraryCall)
    assert call_nbytes(launch, schedule) == IN_AND_OUT
    assert len(schedule.slots) - len(schedule.reuses) == 1  # the product has no memory


def test_a_cpu_computes_them_in_the_products_bytes() -> None:
    schedule = planned(activated(product()))
    made, kernel = schedule.launches
    assert isinstance(made, LibraryCall)
    assert isinstance(kernel, Kernel)
    assert made.epilogue is None
    slots = [schedule.values[value].slot for value in (made.target, kernel.stores[0].value)]
    assert slots[0] == slots[1]
    assert len(schedule.slots) - len(schedule.reuses) == 1
    assert call_nbytes(made, schedule) + moved_nbytes(schedule) == IN_AND_OUT + 2 * 8 * N * M


def test_several_results_of_one_product_share_its_kernel() -> None:
    made = product()
    roots = activated(made), call("tanh", made)
    del made
    schedule = planned(*roots, traits=GPU)
    (launch,) = schedule.launches
    assert isinstance(launch, LibraryCall)
    assert launch.epilogue is not None
    assert len(launch.epilogue.stores) == 2


def test_a_product_that_is_read_elsewhere_is_stored() -> None:
    transposed = build.view(product(), (M, N), 0, (1, M))
    rows = build.reduce("add", product(), (1,), np.dtype(np.float64))
    made = product()
    for roots in ((call("tanh", transposed),), (rows,), (made, call("tanh", made))):
        schedule = planned(*roots, traits=GPU)
        calls = [step for step in schedule.launches if isinstance(step, LibraryCall)]
        assert [step.epilogue for step in calls] == [None]
        assert len(schedule.launches) > 1


def test_a_chain_of_products_is_a_launch_each() -> None:
    hidden = activated(product())
    last = build.library("matmul", (hidden, array(M, K)), (N, K), np.dtype(np.float64))
    root = call("add", last, array(N, K))
    del hidden, last
    schedule = planned(root, traits=GPU)
    assert len(schedule.launches) == 2
    assert all(isinstance(step, LibraryCall) and step.epilogue for step in schedule.launches)
