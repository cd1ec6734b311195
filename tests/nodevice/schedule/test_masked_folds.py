"""Selections that are only folded: nothing is packed (`clfuse.schedule.rewrite.masked_folds`)."""

from __future__ import annotations

import numpy as np
import pytest

from clfuse.ir import build
from clfuse.ir.nodes import Node, Storage, record
from clfuse.target.traits import DeviceTraits, with_schedule
from tests.support.recording import BOOL, FLOAT64, array, call, kernels, number, planned

N = 1 << 20
COUNT = 400_000
DEVICES = {
    "CPU": DeviceTraits(vector_bytes=64, work_items=64, compute_units=2),
    "GPU": with_schedule(DeviceTraits(compute_units=132, kind="gpu", local_nbytes=49152), "gpu"),
}


def masked() -> tuple[Node, Node]:
    """A mask, and the number of elements that it selects before each piece."""
    return array(N, dtype=np.bool_), array(257, dtype=np.int64)


def selected(mask: Node, starts: Node, value: Node | None = None, count: int = COUNT) -> Node:
    return build.compact(mask, array(N) if value is None else value, starts, count, 4096)


def folded(name: str, node: Node) -> Node:
    return build.reduce(name, node, tuple(range(len(node.shape))), node.dtype)


def names(*roots: Node, traits: DeviceTraits = DEVICES["CPU"]) -> list[str]:
    return [kernel.kind.name for kernel in kernels(planned(*roots, traits=traits))]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["add", "multiply", "minimum", "maximum", "fmin", "fmax"])
def test_a_fold_of_a_selection_packs_nothing(device: str, name: str) -> None:
    root = folded(name, call("multiply", selected(*masked()), number(2.0)))
    schedule = planned(root, traits=DEVICES[device])
    first, *_ = kernels(schedule)
    assert {kernel.kind.name for kernel in kernels(schedule)} == {"reduce"}
    assert first.extents == (N,)
    new = [n for slot, n in enumerate(schedule.slots) if slot not in schedule.reuses]
    assert sum(new) < 16 << 10


@pytest.mark.parametrize("name", ["logical_and", "logical_or"])
def test_truth_values_of_a_selection_are_folded_so_too(name: str) -> None:
    truths = call("greater", selected(*masked()), number(2.0), dtype=BOOL)
    assert "compact" not in names(folded(name, truths))


def test_several_folds_of_one_selection_are_one_kernel() -> None:
    chosen = selected(*masked())
    roots = [folded(name, chosen) for name in ("add", "minimum", "maximum", "multiply")]
    first, *others = kernels(planned(*roots))
    assert first.extents == (N,)
    assert [fold.name for fold in first.accumulators] == ["add", "minimum", "maximum", "multiply"]
    assert all(kernel.follows for kernel in others)


def test_arrays_that_one_mask_selects_are_folded_together() -> None:
    mask, starts = masked()
    product = call("multiply", selected(mask, starts), selected(mask, starts))
    assert "compact" not in names(folded("add", product))


def test_arrays_that_two_masks_select_are_packed() -> None:
    product = call("multiply", selected(*masked()), selected(*masked()))
    assert names(folded("add", product)).count("compact") == 2


def test_rows_that_a_mask_selects_are_folded_in_their_places() -> None:
    flags = array(N // 8, dtype=np.bool_)
    spread = build.reshape(build.view(flags, (N // 8, 8), 0, (1, 0)), (N,))
    chosen = build.reshape(selected(spread, array(33, dtype=np.int64)), (COUNT // 8, 8))
    assert "compact" not in names(folded("maximum", chosen))


def test_selections_are_packed_for_folds_of_columns() -> None:
    chosen = build.reshape(selected(*masked()), (COUNT // 8, 8))
    assert "compact" in names(build.reduce("maximum", chosen, (0,), FLOAT64))


def test_a_selection_that_is_asked_for_is_packed_and_folded() -> None:
    chosen = selected(*masked())
    found = kernels(planned(folded("minimum", chosen), chosen))
    assert [kernel.kind.name for kernel in found] == ["compact", "reduce", "reduce"]
    assert found[1].extents == (COUNT,)


def test_a_selection_that_others_read_is_packed() -> None:
    chosen = selected(*masked())
    low = folded("minimum", chosen)
    assert "compact" in names(low, call("subtract", chosen, low))


def test_a_selection_that_is_held_is_packed_for_its_second_fold() -> None:
    chosen = selected(*masked())
    cell: Storage = record(chosen)
    assert "compact" not in names(folded("minimum", chosen))
    chosen.computed = True
    found = kernels(planned(folded("minimum", chosen)))
    assert [kernel.kind.name for kernel in found] == ["compact", "reduce", "reduce"]
    assert cell.node is chosen


def test_what_is_left_pending_is_said_to_have_been_computed() -> None:
    chosen = selected(*masked())
    cell: Storage = record(chosen)
    schedule = planned(folded("minimum", chosen))
    assert len(schedule.recomputed) == 1
    assert cell.node is chosen


@pytest.mark.parametrize(("count", "packs"), [(N // 2, False), (N // 100, True)])
def test_few_elements_are_packed_where_much_is_computed(count: int, packs: bool) -> None:
    powers = call("exp", selected(*masked(), count=count))
    assert ("compact" in names(folded("add", powers))) is packs
    doubled = call("multiply", selected(*masked(), count=count), number(2.0))
    assert "compact" not in names(folded("add", doubled))


def test_complex_selections_are_packed() -> None:
    mask, starts = masked()
    chosen = selected(mask, starts, array(N, dtype=np.complex128))
    assert "compact" in names(folded("multiply", chosen))
