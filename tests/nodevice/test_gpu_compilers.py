"""What `tests.vendors` reads of the compilers' output, how it puts programs together, and what it
holds them to; the compilers themselves run in ci/test's section ``vendors``."""

from __future__ import annotations

import re

import numpy as np
import pytest

from clfuse.codegen.kernels import render
from clfuse.ir import build
from clfuse.target.traits import DeviceTraits, with_schedule
from tests.support.recording import array, call, kernels, planned
from tests.vendors import amd, bars, intel, nvidia, programs, verified
from tests.vendors.classes import CLASSES, kernel_class
from tests.vendors.compiling import TARGETS, VENDORS, Result
from tests.vendors.figures import Figures
from tests.vendors.programs import Program

GPU = with_schedule(DeviceTraits(kind="gpu", unified_memory=False), "gpu")

PTX = """
.visible .entry first(
\t.param .u64 first_param_0
)
{
\tld.param.u64 \t%rd1, [first_param_0];
\tld.global.nc.v4.f32 \t{%f1, %f2, %f3, %f4}, [%rd4];
\tld.shared.v2.f64 \t{%fd1, %fd2}, [%rd9];
}
.entry second(
)
{
\tld.global.u8 \t%rs1, [%rd1];
\tld.volatile.global.u64 \t%rd5, [%rd1];
}
.entry third(
)
{
\tst.global.v4.f32 \t[%rd5], {%f1, %f2, %f3, %f4};
}
"""

PTXAS = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'first' for 'sm_90'
ptxas info    : Function properties for first
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 32 registers, used 1 barriers, 1024 bytes smem
ptxas info    : Compile time = 15.878 ms
ptxas info    : Compiling entry function 'second' for 'sm_90'
ptxas info    : Function properties for second
    96 bytes stack frame, 24 bytes spill stores, 32 bytes spill loads
ptxas info    : Used 255 registers, used 0 barriers
"""

AMD = """\
\t.globl\tfirst
first:                                  ; @first
; %bb.0:
\ts_load_dwordx4 s[4:7], s[2:3], 0x0
\tglobal_load_dwordx2 v[0:1], v[4:5], off
\tglobal_load_ubyte v8, v[0:1], off
.Lfunc_end0:
\t.size\tfirst, .Lfunc_end0-first
second:                                 ; @second
\tglobal_load_b128 v[0:3], v[4:5], off
\tscratch_load_b128 v[0:3], off
.Lfunc_end1:
\t.amdgpu_metadata
---
amdhsa.kernels:
  - .args:
      - .address_space:  global
        .name:           a
        .size:           8
    .group_segment_fixed_size: 0
    .name:           first
    .private_segment_fixed_size: 0
    .sgpr_count:     18
    .vgpr_count:     6
    .vgpr_spill_count: 0
  - .args:           []
    .group_segment_fixed_size: 1024
    .name:           second
    .private_segment_fixed_size: 80
    .sgpr_count:     18
    .vgpr_count:     128
    .vgpr_spill_count: 4
amdhsa.target:   amdgcn-amd-amdhsa--gfx90a
amdhsa.version:
  - 1
  - 1
...
"""

# 512 bytes of scratch a thread, 16 work-items, 128 registers, 2048 bytes of local memory.
INTEL = f"""\
KernelBinaryHeader:
\t4 CheckSum 564662328
\tKernelName first
Unidentified PatchToken:
\t4 Token 15
\t4 Size 16
\tHex 0 0 0 0 0 8 0 0
Unidentified PatchToken:
\t4 Token 18
\t4 Size 16
\tHex 0 0 0 0 0 2 0 0
Unidentified PatchToken:
\t4 Token 23
\t4 Size 140
\tHex {"0 " * 12}10 0 0 0 {"0 " * 64}80 0 0 0 {"0 " * 48}
"""


def test_nvidias_figures_and_loads() -> None:
    loads = nvidia.widest_loads(PTX)
    assert loads == {"first": 16, "second": 8, "third": 0}
    assert nvidia.kernels_of_log(PTXAS, loads) == {
        "first": Figures(32, 0, 0, 1024, 16), "second": Figures(255, 32, 64, 0, 8)}
    assert nvidia.for_chip(".version 3.2\n.target sm_20\n.address_size 64\n", "sm_90") == (
        ".version 7.8\n.target sm_90\n.address_size 64\n")


def test_amds_figures_and_loads() -> None:
    assert amd.kernels_of_assembly(AMD) == {
        "first": Figures(6, 0, 0, 0, 8), "second": Figures(128, 16, 64, 1024, 16)}


def test_intels_figures_and_loads() -> None:
    assembly = "send.ugm (32|M0) r18 r14 // wr:4+0, rd:8; load.ugm.d32x2.a64"
    newer = INTEL.replace("10 0 0 0", "10 0 0 0 0 0 0 0")  # a field more
    assert newer != INTEL
    for records in (INTEL, newer):
        assert intel.kernels_of({"": records, "first": assembly}) == {
            "first": Figures(128, 0, 32, 2048, 8)}


@pytest.mark.parametrize(("text", "nbytes"), [
    ("load.ugm.d32x4.a64", 16), ("load.ugm.d64x2.a32.ca.ca.bti[0]", 16),
    ("load.ugm.d8u32.a64", 1), ("load.ugm.d64.a64.ca.ca", 8),
    ("load.ugm.d32x16t.a32.ca.ca.bti[255]", 0), ("load.ugm.d32x1t.a64", 0),
    ("load.ugm.d32x4.a32.ca.ca.ss[a0.2]", 0), ("store.ugm.d32x4.a64", 0),
    ("load.slm.d32x4.a32", 0), ("untyped surface read with xyzw", 16),
    ("untyped surface read with x", 4), ("byte gathering read 16b", 2),
])
def test_intels_loads_from_global_memory(text: str, nbytes: int) -> None:
    assert intel.widest_load(f"send (16|M0) // wr:1+0, rd:2; {text}\n") == nbytes


def rendered(*nodes) -> list[Program]:
    found = []
    for node in nodes:
        (kernel,) = kernels(planned(node, traits=GPU))
        source = render(kernel, GPU, lambda value: value).source
        found.append(Program(source, "", kernel_class(kernel, "gpu")))
    return found


def some_programs() -> list[Program]:
    a, b = array(100, dtype=np.float32), array(100, dtype=np.float32)
    return rendered(
        call("add", a, b), call("floor", a), call("floor_divide", a, b), call("hypot", a, b),
        call("add", a, build.view(b, (100,), 99, (-1,))))


def test_kernels_are_compiled_together_below_what_they_all_need() -> None:
    single = some_programs()
    (batch,) = programs.batches(single)
    assert sorted(batch.names) == ["K0", "K1", "K2", "K3", "K4"]
    assert re.findall(r"__kernel void (\w+)\(", batch.source) == list(batch.names)
    for program in single:
        assert program.names[0] not in batch.source
        for part in program.head:
            assert batch.source.count(part) == 1
        assert batch.of_name(batch.names[batch.programs.index(program)]) is program


@pytest.mark.parametrize("source", [
    "__kernel void a(__global int *p) { *p = 1; }\n__kernel void b(__global int *p) { *p = 2; }",
    "int f(int x) { return x; }\n__kernel void a(__global int *p) { p[0] = f(1); }",
    "__kernel void a(__global int *p)\n{\n#ifdef X\np[0] = 1;\n#endif\n}",
    "__kernel void a(__global int *p) { p[0] = 1; }\nvoid f(void) {}",
])
def test_more_than_a_head_and_a_kernel_is_compiled_alone(source: str) -> None:
    program = Program(source)
    assert [batch.programs for batch in programs.batches([program, *some_programs()])
            if program in batch.programs] == [(program,)]


def test_classes_and_options_make_other_programs_names_do_not() -> None:
    text = "__kernel void {0}(__global int *p) {{ p[0] = 1; }}"
    one, other = Program(text.format("one")), Program(text.format("other"))
    assert one.key == other.key
    assert one.key != Program(text.format("one"), "-cl-fast-relaxed-math").key
    assert one.key != Program(text.format("one"), "", "user").key
    assert one.key != Program(text.format("one").replace("1", "2")).key
    assert Program("kernel void f(double x) {}").needs_fp64
    assert not one.needs_fp64


def test_programs_come_back_from_a_folder(tmp_path) -> None:
    written = some_programs()
    for program in [*written, *written]:
        programs.write(tmp_path, program)
    assert programs.read(tmp_path) == sorted(written, key=lambda program: program.key)
    assert programs.parse("__kernel void f() {}") == Program("__kernel void f() {}", "", "raw")


def test_whole_arrays_of_floats_are_a_class_of_their_own() -> None:
    a, b = array(1000, dtype=np.float32), array(1000, dtype=np.float32)
    half = array(1000, dtype=np.float16)
    classes = [program.kernel_class for program in rendered(
        call("add", a, b), call("negative", build.view(a, (9,), 4, (1,))), call("negative", half))]
    assert classes == ["map contiguous", "map", "map"]
    (kernel,) = kernels(planned(call("add", a, b)))
    assert kernel_class(kernel, "cpu") is None
    assert set(bars.BARS) == set(CLASSES)


def test_what_is_worse_than_its_bar_is_said() -> None:
    (program, *_) = some_programs()
    assert program.kernel_class == "map contiguous"
    name = program.names[0]

    def said(**worse: int) -> list[str]:
        facts = {"registers": 20, "spilled_nbytes": 0, "stack_nbytes": 0, "local_nbytes": 0,
                 "load_nbytes": 16} | worse
        return list(bars.exceeded(Result(program, {"sm_90": {name: Figures(**facts)}}, {}, 0.0)))

    assert said() == []
    assert said(load_nbytes=4) == [
        f"sm_90: {name} (map contiguous) loads 4 bytes at a time; the bar is 16"]
    assert said(stack_nbytes=8) == [
        f"sm_90: {name} (map contiguous) has 8 bytes of stack; the bar is 0"]
    assert said(spilled_nbytes=4, registers=256) == [
        f"sm_90: {name} (map contiguous) has 4 bytes of spilled registers; the bar is 0",
        f"sm_90: {name} (map contiguous) has 256 registers; the bar is"
        f" {bars.bar_for('map contiguous', 'sm_90').registers}"]


def test_what_was_verified_by_other_compilers_is_not_verified(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(verified, "PATH", tmp_path / "verified.txt")
    versions = {"clang": "15.0.6", "ptxas": "12.9.86"}
    assert verified.read(versions) == set()
    written = some_programs()
    verified.write(versions, written)
    assert verified.read(versions) == {verified.digest(program) for program in written}
    assert verified.read(versions | {"ptxas": "13.0"}) == set()


def test_the_chips_are_those_of_the_guide() -> None:
    assert TARGETS == ("sm_70", "sm_90", "gfx90a", "gfx1100", "pvc", "tgllp", "dg2-g10")
    assert [vendor.single for vendor in VENDORS] == [(), (), ("tgllp", "dg2-g10")]


def test_a_long_name_is_what_compilers_see() -> None:
    name = "k" * 200
    kernel = f"__kernel void {name}(__global int *x) {{ *x = 1; }}"
    assert Program(kernel).names == (name,)
    assert Program(f"#define {name} k_short\n{kernel}").names == ("k_short",)
