"""Sorts of the GPU schedule: which launches they are, and what memory they need."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from clfuse.codegen.sorting import render_sort
from clfuse.ir import build
from clfuse.ir.nodes import Node
from clfuse.schedule.records import LibraryCall, SortPass
from tests.support.recording import TRAITS, array, call, number, planned

GPU = replace(TRAITS, schedule="gpu")
N = 1 << 20


def sorted_(node: Node, **how: object) -> Node:
    whole = (node.dtype.char, node.shape, 0, tuple(np.cumprod((1, *node.shape[:0:-1]))[::-1]))
    extra = (("axis", len(node.shape) - 1), *how.items())
    return build.library("sort", (node,), node.shape, node.dtype, (whole, (), extra))


def places_of(node: Node) -> Node:
    extra = ((node.shape,), (("axis", len(node.shape) - 1),))
    return build.library("argsort", (node,), node.shape, np.dtype(np.int64), extra)


@pytest.mark.parametrize(("char", "nbytes"), [("?", 1), ("b", 1), ("e", 2), ("f", 4), ("q", 8)])
def test_long_rows_are_sorted_by_bytes_and_short_ones_by_halves(char: str, nbytes: int) -> None:
    """Three launches a digit; four where one group would go over too many counters."""
    passes = ["count", "scan", "scatter"]
    halves = 1 if char == "?" else 2 * nbytes
    for shape, digits, stages, local in (
        ((30_000,), nbytes, passes, 48), ((3000, 2000), halves, passes, 4),
        ((20, 3000), nbytes, passes, 48), ((N,), nbytes, ["count", "sums", "scan", "scatter"], 48),
    ):
        launches = planned(sorted_(array(*shape, dtype=char)), traits=replace(
            GPU, compute_units=132, local_nbytes=local << 10)).launches
        assert all(isinstance(launch, SortPass) for launch in launches)
        found = [launch.stage for launch in launches if isinstance(launch, SortPass)]
        # Passes over tiles load and store elements, but for a single one.
        before = ["encode"] if local == 4 or digits == 1 else []
        assert found == [*before, *stages * digits, *(["decode"] if local == 4 else [])]


def test_rows_that_find_room_in_local_memory_are_one_launch() -> None:
    for n, local, group, char, found in (
        (64, 48, 256, "f", (32, 64, 8)), (64, 48, 128, "f", (16, 64, 8)),
        (65, 48, 256, "f", (16, 128, 8)), (3, 48, 256, "f", (256, 4, 4)),
        (2048, 48, 256, "d", (1, 2048, 8)), (2049, 48, 256, "f", None),
        (1500, 16, 128, "f", None), (64, 2, 256, "f", (4, 64, 8)), (1, 48, 256, "b", (256, 2, 2)),
    ):
        traits = replace(GPU, local_nbytes=local << 10, max_work_group=group)
        for made in (sorted_, places_of):
            launches = planned(made(array(5000, n, dtype=char)), traits=traits).launches
            assert isinstance(launches[0], SortPass)
            if found is None:
                assert launches[0].stage != "rows"
                continue
            (launch,) = launches
            assert isinstance(launch, SortPass)
            if made is sorted_:
                assert (launch.chunks, launch.length, launch.each) == found
            source = render_sort(launch, traits, lambda value: value).source
            words = re.findall(r"__local (\w+) \w+\[(\d+)\];", source)
            sizes = {"ushort": 2, "item_t": 8 if made is places_of or char == "d" else 4}
            assert 0 < sum(sizes[kind] * int(count) for kind, count in words) <= local << 10


def test_tiles_of_a_sort_fit_in_local_memory() -> None:
    for local, group, narrow, wide in (
        (64, 256, 16, 16), (48, 256, 16, 8), (32, 256, 8, 4), (16, 256, 0, 0), (64, 128, 0, 0),
    ):
        traits = replace(GPU, local_nbytes=local << 10, max_work_group=group)
        for char, each in (("f", narrow), ("d", wide)):
            launches = planned(sorted_(array(N, dtype=char)), traits=traits).launches
            assert {launch.each for launch in launches if isinstance(launch, SortPass)} == {each}
            for launch in launches if each else ():
                assert isinstance(launch, SortPass)
                assert launch.length % (256 * each) == 0
                assert (launch.chunks - 1) * launch.length < N <= launch.chunks * launch.length
                source = render_sort(launch, traits, lambda value: value).source
                words = re.findall(r"__local (\w+) \w+\[(\d+)\];", source)
                sizes = {"uint": 4, "key_t": 8 if char == "d" else 4, "ushort": 2, "ushort2": 4}
                assert sum(sizes[kind] * int(count) for kind, count in words) <= local << 10


def test_what_is_sorted_may_be_computed_and_what_follows_fuses() -> None:
    made = call("multiply", array(N), number(2.0))
    root = call("add", sorted_(made), number(1.0))
    del made
    names = [type(launch).__name__ for launch in planned(root, traits=GPU).launches]
    assert names[0] == names[-1] == "Kernel"
    assert set(names[1:-1]) == {"SortPass"}


def test_keys_and_counters_take_turns() -> None:
    for root, carried in ((sorted_(array(N, dtype="f4")), 0), (places_of(array(N, dtype="f4")), 4)):
        schedule = planned(root, traits=GPU)
        own = [n for slot, n in enumerate(schedule.slots) if slot not in schedule.reuses]
        # Two multiprocessors have 16 pieces each, so many as one group goes over.
        counters = 32 * 256 * 4
        result = N * root.dtype.itemsize
        assert sum(own) <= 2 * N * (4 + carried) + counters + result


def test_others_are_left_to_the_host() -> None:
    for root in (sorted_(array(N, dtype="F")), sorted_(array(8)), places_of(array(9, dtype="D"))):
        traits = TRAITS if root.dtype == np.float64 else GPU
        (launch,) = planned(root, traits=traits).launches
        assert isinstance(launch, LibraryCall)


def stages_of(root: Node, **traits: object) -> list[str]:
    launches = planned(root, traits=replace(TRAITS, **traits)).launches
    return [launch.stage if isinstance(launch, SortPass) else "host" for launch in launches]


def test_cpus_sort_by_eight_bit_digits_where_numpy_is_slower() -> None:
    four = ["encode", *["count", "scan", "scatter"] * 4, "decode"]
    assert stages_of(places_of(array(N, dtype="f4"))) == four
    assert stages_of(sorted_(array(N, dtype="i4"), kind="stable")) == four
    assert stages_of(sorted_(array(N, dtype="f4")), sorts_slowly=True) == four
    for left in (
        sorted_(array(N, dtype="f4")),
        sorted_(array(N, dtype="i2"), stable=True),
        places_of(array(1000, 1000, dtype="f4")),
        places_of(array(N, dtype="F")),
    ):
        assert stages_of(left) == ["host"]


def test_every_core_of_a_cpu_has_a_piece() -> None:
    for rows, chunks in ((1, 6), (4, 2), (9, 1)):
        schedule = planned(
            places_of(array(rows, N, dtype="f4")), traits=replace(TRAITS, compute_units=6)
        )
        (first, *_) = schedule.launches
        assert isinstance(first, SortPass)
        assert (first.rows, first.chunks) == (rows, chunks)
