"""Which matrix products and Fourier transforms libraries make on a device with memory of its own,
and in which form they get them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from clfuse.ir import build
from clfuse.ir.nodes import TRANSFORM, Node
from clfuse.schedule.device_libraries import LEAST_SIDE
from clfuse.schedule.library_forms import Matrix, Product, Transform
from clfuse.schedule.records import Kernel, LibraryCall
from tests.support.recording import TRAITS, array, call, number, planned

OWN = replace(TRAITS, schedule="gpu")
HELPED = replace(OWN, libraries=("clblast", "vkfft"))
N = LEAST_SIDE
DOUBLE, COMPLEX = np.dtype(np.float64), np.dtype(np.complex128)


def product(left: Node, right: Node) -> Node:
    batch = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    return build.library(
        "matmul", (left, right), (*batch, left.shape[-2], right.shape[-1]), DOUBLE
    )


def made_by(left: Node, right: Node) -> Product | Transform | None:
    (step,) = planned(product(left, right), traits=HELPED).launches
    assert isinstance(step, LibraryCall)
    return step.maker


def test_large_products_are_the_librarys_small_ones_ours() -> None:
    made = made_by(array(N, N), array(N, 2 * N))
    assert isinstance(made, Product)
    left, right = made.left.value, made.right.value
    assert left != right
    assert made == Product(
        N, 2 * N, N, 1, Matrix(left, 0, N, False, 0), Matrix(right, 0, 2 * N, False, 0)
    )
    assert made_by(array(N, N - 1), array(N - 1, N)) is None


def test_views_with_one_dense_axis_are_read_where_they_lie() -> None:
    whole = array(2 * N, 3 * N)
    part = build.view(whole, (N, N), 5 * 3 * N + 7, (3 * N, 1))
    turned = build.view(whole, (N, N), 7, (1, 3 * N))
    made = made_by(part, turned)
    assert isinstance(made, Product)
    assert (made.left.offset, made.left.leading, made.left.turned) == (5 * 3 * N + 7, 3 * N, False)
    assert (made.right.offset, made.right.leading, made.right.turned) == (7, 3 * N, True)


@pytest.mark.parametrize(
    ("strides", "why"),
    [((6 * N, 2), "every other"), ((-3 * N, 1), "upside down"), ((0, 1), "one row")],
)
def test_other_views_are_read_by_our_kernel(strides: tuple[int, int], why: str) -> None:
    whole = array(2 * N, 3 * N)
    offset = 3 * N * (N - 1) if strides[0] < 0 else 0
    assert made_by(build.view(whole, (N, N), offset, strides), array(N, N)) is None, why


def test_a_batch_of_evenly_spaced_matrices_is_one_call() -> None:
    even = made_by(array(2, 3, N, N), array(N, N))
    assert isinstance(even, Product)
    assert (even.batch, even.left.step, even.right.step) == (6, N * N, 0)
    assert made_by(array(2, 3, N, N), array(2, 1, N, N)) is None


def test_what_follows_a_librarys_product_is_a_kernel_behind_it() -> None:
    def activated() -> Node:
        made = product(array(N, N), array(N, N))
        return call("maximum", call("add", made, array(N)), number(0.0))

    ours = planned(activated(), traits=OWN).launches
    assert len(ours) == 1
    theirs = planned(activated(), traits=HELPED).launches
    assert [type(step) for step in theirs] == [LibraryCall, Kernel]


def test_a_transforms_operand_is_stored_in_c_order() -> None:
    whole = array(8, 6)
    turned = build.view(whole, (6, 8), 0, (1, 6))
    param = (((6, 8),), ("rfftn", None, (0, 1), None))
    made = build.library(TRANSFORM, (turned,), (6, 5), COMPLEX, param)
    stored, step = planned(made, traits=HELPED).launches
    assert isinstance(stored, Kernel)
    assert isinstance(step, LibraryCall)
    (operand,) = step.operands
    assert (operand.offset, operand.strides) == (0, (8, 1))
    assert step.maker == Transform("real", True, (6, 8), (0, 1), operand.value)
