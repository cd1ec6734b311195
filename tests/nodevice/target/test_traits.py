"""Device facts as data: launch figures of the schedules, vector widths, quirks."""

from __future__ import annotations

import pytest

from clfuse.target.traits import (
    QUIRKS,
    DeviceTraits,
    Quirk,
    apply_quirks,
    cpu_vector_bytes,
    with_schedule,
)

INTEL = DeviceTraits(platform="Intel(R) OpenCL", kind="cpu", correctly_rounded_divide=False)


@pytest.mark.parametrize(
    ("preferred", "native", "nbytes"),
    [(16, 16, 64), (1, 16, 64), (8, 8, 32), (4, 4, 16), (1, 1, 16), (32, 32, 64)],
)
def test_vectors_are_as_wide_as_the_larger_claim_in_opencl_c(
    preferred, native, nbytes
):
    assert cpu_vector_bytes(preferred, native) == nbytes


@pytest.mark.parametrize(("units", "chunks"), [(1, 32), (2, 64), (8, 256), (64, 256)])
def test_a_cpu_gets_a_few_chunks_per_unit_and_never_many(units, chunks):
    traits = with_schedule(DeviceTraits(compute_units=units), "cpu")
    assert (traits.work_items, traits.work_group) == (chunks, 1)


def test_the_gpu_schedule_can_be_forced_on_a_cpu():
    traits = with_schedule(DeviceTraits(compute_units=2, max_work_group=64), "gpu")
    assert traits.schedule == "gpu"
    assert traits.work_group == 64
    assert traits.work_items == 2 * 32 * 64
    assert traits.vector_bytes == 16
    assert traits.kind == "cpu"


def test_a_quirk_matches_texts_by_pattern_and_the_rest_by_value():
    quirk = Quirk("q", {"platform": r"^acme", "fp64": False}, {"fp16": False}, "why")
    acme = DeviceTraits(platform="Acme CL", fp64=False, fp16=True)
    assert quirk.holds(acme)
    assert apply_quirks(acme, (quirk,)).fp16 is False
    assert apply_quirks(acme, (quirk,)).quirks == ("q",)
    assert apply_quirks(INTEL, (quirk,)) == INTEL


@pytest.mark.parametrize(
    ("name", "asks"),
    [
        ("pthread-skylake-avx512-AMD EPYC", False),
        ("AMD Ryzen 9 7950X 16-Core Processor", False),
        ("Intel(R) Xeon(R) Processor", True),
        ("pthread-neoverse-n1", True),
    ],
)
def test_amds_processors_do_not_prefetch_and_bypass_caches(name, asks):
    traits = apply_quirks(DeviceTraits(name=name, kind="cpu"))
    assert traits.asks_ahead is asks
    assert traits.reads_past is not asks


@pytest.mark.parametrize(
    ("features", "slowly"),
    [
        ("", True),
        ("x86_64flags\t: fpu avx512f avx512vl avx512_vpopcntdq", True),
        ("x86_64flags\t: fpu avx512f avx512_vp2intersect movdiri", False),
    ],
)
def test_numpys_sort_is_slow_where_compressing_stores_are(features, slowly):
    traits = DeviceTraits(name="AMD EPYC", kind="cpu", vector_bytes=64, features=features)
    assert apply_quirks(traits).sorts_slowly is slowly


def test_expressions_of_several_quirks_add_up():
    first = Quirk("a", {}, {"expressions": {("sin", "float32"): "A", ("cos", "float32"): "A"}}, "")
    second = Quirk("b", {}, {"expressions": {("sin", "float32"): "B"}}, "")
    assert apply_quirks(DeviceTraits(), (first, second)).expressions == {
        ("sin", "float32"): "B",
        ("cos", "float32"): "A",
    }


def test_a_change_may_depend_on_the_traits():
    doubled = Quirk("c", {}, {"work_items": lambda traits: 2 * traits.work_items}, "")
    assert apply_quirks(DeviceTraits(work_items=8), (doubled,)).work_items == 16


def test_intel_divides_correctly_though_it_does_not_say_so():
    assert apply_quirks(INTEL).correctly_rounded_divide


def test_every_quirk_says_why_and_names_traits_that_exist():
    names = set(DeviceTraits.__dataclass_fields__)
    for quirk in QUIRKS:
        assert quirk.reason
        assert set(quirk.match) <= names
        assert set(quirk.change) <= names


def test_traits_are_hashable_with_expressions_too():
    assert len({DeviceTraits(), DeviceTraits(expressions={("sin", "float32"): "x"})}) == 2


@pytest.mark.parametrize(("kind", "asks"), [("cpu", False), ("gpu", True), ("accelerator", True)])
def test_conversions_give_a_range_where_instructions_saturate(kind, asks):
    assert apply_quirks(DeviceTraits(kind=kind)).saturating_casts is asks
