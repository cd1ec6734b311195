"""Fourier transforms of the GPU schedule: how lengths are divided, which launches there are, and
what their tables hold."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from clfuse.ir import build
from clfuse.ir.nodes import Node
from clfuse.schedule.fourier_tables import FINE, Table, roots
from clfuse.schedule.records import FourierPass, Kernel, LibraryCall
from clfuse.target.fourier import (
    PRIMES,
    ROWS_OF_STEPS,
    divided,
    items_of_group,
    padded,
    radices,
    rows_of_group,
    transforms,
)
from tests.support.recording import TRAITS, array, call, number, planned

GPU = replace(TRAITS, schedule="gpu", local_nbytes=48 << 10, max_work_group=1024)
SMALL = replace(GPU, local_nbytes=16 << 10, max_work_group=128, fp64=False)
SINGLE, DOUBLE = np.dtype("F"), np.dtype("D")


def transform(
    node: Node, points: int | None = None, name: str = "fft", dtype: np.dtype = DOUBLE
) -> Node:
    length = node.shape[-1] if points is None else points
    kept = length // 2 + 1 if name == "rfft" else length
    param = ((node.shape,), (name, points, len(node.shape) - 1, None))
    return build.library("fourier", (node,), (*node.shape[:-1], kept), dtype, param)


def passes(node: Node) -> list[FourierPass]:
    launches = planned(node, traits=GPU).launches
    assert all(isinstance(launch, FourierPass) for launch in launches)
    return [launch for launch in launches if isinstance(launch, FourierPass)]


@pytest.mark.parametrize("traits", [GPU, SMALL], ids=["large", "small"])
def test_factors_are_the_length_and_fit_local_memory(traits: object) -> None:
    device = GPU if traits is GPU else SMALL
    room = device.local_nbytes // (2 * SINGLE.itemsize)
    for n in [*range(1, 400), 1 << 16, 1 << 20, 1 << 24, 3**9, 5**7, 13**4, 65537, 10**6 + 3]:
        made = divided(device, SINGLE, n)
        assert made is not None
        assert math.prod(made.factors) == made.length
        assert made.by_chirp == (max(_primes(n), default=1) > PRIMES[-1])
        if made.by_chirp:
            assert made.length >= 2 * n - 1
        for factor in made.factors:
            assert math.prod(radices(factor)) == factor
            together = rows_of_group(device, SINGLE, factor, 1 << 20)
            pitch = factor + (together > 1)
            assert 2 * together * pitch * SINGLE.itemsize <= device.local_nbytes
            assert len(made.factors) == 1 or together >= ROWS_OF_STEPS
            assert factor <= room
            assert items_of_group(device, together * factor) <= device.max_work_group


def _primes(n: int) -> list[int]:
    found, prime = [], 2
    while prime * prime <= n:
        while n % prime == 0:
            found.append(prime)
            n //= prime
        prime += 1
    return found + [n] * (n > 1)


def test_what_no_kernel_transforms_is_left_to_the_host() -> None:
    cpu = replace(GPU, schedule="cpu")
    assert not transforms(cpu, SINGLE, 64)
    assert transforms(GPU, DOUBLE, 64)
    assert transforms(SMALL, SINGLE, 64)
    assert not transforms(SMALL, DOUBLE, 64)
    assert not transforms(GPU, SINGLE, 0)
    large_prime = 4_194_319
    assert not transforms(GPU, SINGLE, large_prime)
    (launch,) = planned(transform(array(large_prime)), traits=GPU).launches
    assert isinstance(launch, LibraryCall)


def test_padded_lengths_are_near_and_of_small_primes() -> None:
    for least in (1, 2, 3, 7, 21, 1000, 2017, 131073):
        length = padded(least)
        assert least <= length <= max(1.25 * least, least + 1)
        assert set(_primes(length)) <= {2, 3, 5}


def test_short_lengths_are_one_launch_and_long_ones_few() -> None:
    assert [step.length for step in passes(transform(array(7, 1024, dtype=DOUBLE)))] == [1024]
    steps = passes(transform(array(1 << 16, dtype=DOUBLE)))
    assert [step.length for step in steps] == [256, 256]
    assert [step.turned for step in steps] == [1 << 16, 0]
    chirp = passes(transform(array(509, dtype=DOUBLE)))
    assert [(step.length, step.is_inverse) for step in chirp] == [(1024, False), (1024, True)]
    assert chirp[0].load.table == chirp[1].store.table
    assert chirp[0].store.table == Table("spectrum", 509, False, "D", 1024)


def test_the_operand_is_read_where_it_lies_and_maps_stay_apart() -> None:
    whole = array(64, 100, dtype=DOUBLE)
    turned = build.view(whole, (50, 32), 3, (2, 100))
    (step,) = passes(transform(turned))
    assert (step.load.offset, step.load.stride, step.dims[0].load_stride) == (3, 100, 2)
    assert (step.store.stride, step.dims[0].store_stride) == (1, 32)
    made = call("multiply", array(64), number(2.0))
    launches = planned(call("absolute", transform(made)), traits=GPU).launches
    assert [type(launch) for launch in launches] == [Kernel, FourierPass, Kernel]


def test_half_of_a_real_spectrum_is_stored() -> None:
    (step,) = passes(transform(array(5, 30), name="rfft"))
    assert (step.store.count, step.load.count, step.load.dtype.char) == (16, 30, "d")


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 12, 100, 4096, 99991])
def test_roots_of_unity_are_a_rounding_off(n: int) -> None:
    k = np.arange(n)
    made = roots(k, n)
    angle = k.astype(np.longdouble) * 2 * np.longdouble("3.14159265358979323846264338327950288") / n
    assert np.abs(made.real - np.cos(angle)).max() < 1.2e-16
    assert np.abs(made.imag + np.sin(angle)).max() < 1.2e-16
    np.testing.assert_array_equal(roots(k, n, is_inverse=True), made.conj())
    quarters = {0: 1, 1: -1j, 2: -1, 3: 1j}
    for quarter, root in quarters.items():
        if n % 4 == 0:
            assert made[quarter * n // 4] == root


def test_tables_have_the_size_that_they_say() -> None:
    for table in (
        Table("roots", 100, True, "F"), Table("chirp", 100, False, "D"),
        Table("parts", 3 * FINE + 7, False, "F"), Table("spectrum", 100, False, "D", 256),
    ):  # fmt: skip
        made = table.values()
        assert (made.nbytes, made.dtype.char) == (table.nbytes, table.char)


def test_a_spectrum_is_that_of_the_chirp() -> None:
    chirp = Table("chirp", 7, False, "D").values()
    x = np.random.default_rng(1).standard_normal(7)
    spectrum = Table("spectrum", 7, False, "D", 15).values()
    padded_values = np.zeros(15, complex)
    padded_values[:7] = x * chirp
    # `spectrum` is divided by the length, which the inverse of `numpy.fft` divides by too
    made = np.fft.ifft(np.fft.fft(padded_values) * spectrum * 15)[:7] * chirp
    np.testing.assert_allclose(made, np.fft.fft(x), atol=1e-13)
