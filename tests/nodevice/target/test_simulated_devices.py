"""The devices that can be simulated: their facts, and the traits that a CPU device gets of them."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from clfuse.config import override, settings
from clfuse.errors import SettingError
from clfuse.runtime.devices import preference
from clfuse.runtime.simulated.simulation import Simulation
from clfuse.runtime.simulated.sources import problem_of
from clfuse.target.simulated_devices import SIMULATED_DEVICES
from clfuse.target.traits import DeviceTraits, apply_quirks

GIB = 1 << 30

POCL = DeviceTraits(
    name="pthread-haswell", vendor="GenuineIntel", platform="Portable Computing Language",
    driver="3.1", version="OpenCL 3.0 PoCL", features="avx2", max_alloc_nbytes=4 * GIB,
    global_nbytes=16 * GIB, local_nbytes=1 << 20, max_parameter_nbytes=1024, max_work_group=4096,
)  # fmt: skip
INTEL = replace(POCL, platform="Intel(R) OpenCL", fp16=True, driver="2026")


def of(key, native=POCL, host_nbytes=256 * GIB):
    return Simulation(key).traits(apply_quirks(native), host_nbytes)


def test_an_unknown_device_is_refused_with_the_list():
    with pytest.raises(SettingError) as caught, override(simulate="h200"):
        pass
    message = str(caught.value)
    assert "CLFUSE_SIMULATE" in message
    assert "h200" in message
    for key in SIMULATED_DEVICES:
        assert key in message
    with override(simulate=" H100 "):
        assert settings.simulate == "h100"


@pytest.mark.parametrize("row", SIMULATED_DEVICES.values(), ids=lambda row: row.key)
def test_a_row_is_a_possible_device_and_names_its_source(row):
    assert row.sources
    assert all(": " in source or source.startswith("https://") for source in row.sources)
    assert row.wave in (16, 32, 64)
    assert row.max_work_group <= max(row.max_work_items) <= 1024
    assert 0 < row.max_alloc_nbytes <= row.global_nbytes
    # What OpenCL 1.2 asks of a device that is not embedded (table 4.3), but for a mobile one.
    assert row.max_parameter_nbytes >= 1024
    assert row.local_nbytes >= (16 if row.key == "mobile" else 32) << 10
    assert row.max_alloc_nbytes >= 128 << 20
    assert row.language in ("CL1.2", "CL2.0", "CL3.0")


def test_rows_cover_all_wave_widths_and_lack_double_or_half():
    rows = SIMULATED_DEVICES.values()
    assert {row.wave for row in rows} == {16, 32, 64}
    assert {row.language for row in rows} == {"CL1.2", "CL2.0", "CL3.0"}
    for name in ("fp64", "fp16", "unified_memory", "correctly_rounded_divide"):
        assert {getattr(row, name) for row in rows} == {False, True}


def test_a_cpu_device_gets_the_traits_of_the_simulated_one():
    traits = of("h100")
    assert traits.kind == "gpu"
    assert traits.schedule == "gpu"
    assert traits.platform == "NVIDIA CUDA"
    assert traits.vendor == "NVIDIA Corporation"
    assert traits.features == ""
    assert (traits.compute_units, traits.max_work_group) == (132, 1024)
    assert (traits.local_nbytes, traits.max_parameter_nbytes) == (48 << 10, 32_764)
    assert (traits.fp64, traits.fp16, traits.unified_memory) == (True, False, False)
    assert traits.work_items == 132 * 32 * 256
    assert traits.global_nbytes == 85_000_000_000
    assert traits.max_alloc_nbytes == 4 * GIB  # PoCL gives no more
    assert "3.1" in traits.driver
    assert "Portable" in traits.driver


def test_memory_is_scaled_to_the_machine_and_no_further():
    traits = of("h100", host_nbytes=16 * GIB)
    assert traits.global_nbytes == 8 * GIB
    assert traits.max_alloc_nbytes == 2 * GIB
    assert of("mobile", host_nbytes=16 * GIB).max_alloc_nbytes == 256 << 20


def test_compiler_quirks_stay_and_the_devices_are_added():
    native, traits = apply_quirks(POCL), of("h100")
    assert native.expressions
    assert native.expressions.items() <= traits.expressions.items()
    assert traits.builtins_read == native.builtins_read == "_OPENCL_H_"
    assert traits.saturating_casts
    assert not traits.whole_vectors  # of a CPU's instructions
    assert "pocl-reads-a-header" in traits.quirks
    assert "casts-saturate" in traits.quirks
    assert "pocl-takes-vectors-apart" not in traits.quirks
    on_intel = of("h100", INTEL)
    assert on_intel.builtins_read == ""
    assert on_intel.subgroups_read == apply_quirks(INTEL).subgroups_read == "_OPENCL_CTH_"
    assert on_intel.correctly_rounded_divide
    assert not of("mobile", INTEL).correctly_rounded_divide


def test_a_device_has_no_more_than_the_cpu_device_that_it_is():
    assert of("arc", INTEL).fp16
    assert not of("arc", POCL).fp16
    assert not of("arc", INTEL).fp64
    assert of("gpumax", replace(POCL, local_nbytes=64 << 10)).local_nbytes == 64 << 10


def test_the_compiler_is_told_the_version_of_opencl_c():
    for native in (POCL, INTEL):
        assert of("h100", native).build_options == "-cl-std=CL1.2"
        assert of("arc", native).build_options == "-cl-std=CL3.0"
    assert of("mi210", INTEL).build_options == "-cl-std=CL2.0"


def test_types_that_the_device_lacks_are_taken_away_too():
    source = "kernel void f() {}\n"
    assert Simulation("gpumax").source(source) == source
    assert "define double16" not in Simulation("h100").source(source)
    assert "half16" in Simulation("h100").source(source)
    assert "double16" in Simulation("arc").source(source)
    # Errors name the user's lines.
    assert Simulation("apple").source(source).endswith("#line 1\n" + source)


@pytest.mark.parametrize(
    ("key", "global_size", "local_size", "local_nbytes", "problem"),
    [
        ("h100", (4096,), (1024,), 49152, ""),
        ("h100", (4096,), None, 0, ""),
        ("h100", (4096,), (2048,), 0, "1024 work-items at most"),
        ("h100", (1, 1, 128), (1, 1, 128), 0, "(1024, 1024, 64)"),
        ("h100", (100,), (64,), 0, "multiple"),
        ("h100", (64,), (64,), 49153, "49,152"),
        ("mobile", (256,), (256,), 0, "128 work-items at most"),
        ("mobile", (128,), (128,), 16385, "local memory"),
        ("mi210", (512,), (512,), 0, "256 work-items at most"),
    ],
)
def test_a_launch_is_held_to_the_limits_of_the_device(
    key, global_size, local_size, local_nbytes, problem
):
    found = Simulation(key).problem_of_launch(global_size, local_size, local_nbytes)
    assert bool(found) == bool(problem)
    assert problem in found


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("kernel void f(global int *x) { x[0] = 1; }", ""),
        ("__kernel void f(); __kernel void f() {} /* f() ü */ // f(é)\nkernel void g() {}", ""),
        ("void h() {} kernel void f() { h(); }", ""),
        ("kernel void f(int a) {} kernel void ff() { printf(\"f(1)\"); }", ""),
        ("kernel void f(local int *x) {}\nkernel void g(local int *x) { f (x); }", "kernel f"),
        ("void h(); __kernel __attribute__((reqd_work_group_size(1, 1, 1))) void f() {}"
         " void h() { f(); }", "kernel f"),
        ("kernel void été() {}", "'é'"),
        ("kernel void f() { int größe = 1; }", "'ö'"),
    ],
)  # fmt: skip
def test_sources_that_other_compilers_refuse_are_refused(source, problem):
    found = problem_of(source)
    assert bool(found) == bool(problem)
    assert problem in found


def listed(native, index, key=""):
    traits = of(key, native) if key else native
    return SimpleNamespace(
        name=native.name, platform_name=native.platform, vendor_name="", index=index,
        kind=traits.kind, untuned_traits=traits, simulation=Simulation(key) if key else None,
    )  # fmt: skip


def test_a_simulated_device_comes_first_under_both_names():
    nvidia = listed(replace(POCL, platform="NVIDIA CUDA", kind="gpu"), "0:0")
    intel, pocl = listed(INTEL, "1:0", "arc"), listed(POCL, "2:0", "arc")
    there = [nvidia, pocl, intel]
    for spec, expected in (
        ("gpu", [intel, pocl, nvidia]), ("portable", [pocl]), ("nvidia", [nvidia]), ("cpu", []),
        ("intel", [intel]), ("graphics", [intel, pocl]), ("2:0", [pocl]), ("0", [nvidia]),
    ):  # fmt: skip
        assert preference.fitting(spec, there) == expected, spec
