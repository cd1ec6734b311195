"""Built-in functions are declared as the compiler's own header declares them, which is not read."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pytest

import clfuse as cf
from clfuse.errors import KernelBuildError
from clfuse.ops.table import FAULTY_BUILTINS, REDUCTIONS, UFUNCS
from clfuse.runtime.drivers import builtins, compiler
from clfuse.runtime.launches import launch, program
from clfuse.runtime.memory import buffers

KERNELS = Path(__file__).parents[3] / "kernels"

HEADER = Path("/usr/share/pocl/include/opencl-c.h")

# What PoCL's CPU device defines before it reads the header.
TRUE = (
    "ifndef _OPENCL_H_",
    "ifdef cl_khr_fp64",
    "CL_VERSION_1_2)",
    "(__opencl_c_named_address_space_builtins)",
    "(cl_khr_global_int32_",
    "(cl_khr_local_int32_",
    "(cl_khr_int64_",
)
PASTED_TYPE = re.compile(r"\b(?:u?(?:char|short|int|long)|float|double)[ \t]*##")
ASSUMED = {"__cnfn": builtins.PURE, "__purefn": builtins.READS}


@pytest.fixture
def pocl(device):
    if "Portable" not in device.platform_name:
        pytest.skip("only PoCL's compiler reads a header for every program")
    return device


def normal(declaration: str) -> str:
    """A declaration without the names of parameters and without spaces."""
    declaration = re.sub(
        r"([\w*] ?)\b(?:flags|p|cmp|val|dimindx|num_elements)\b", r"\1", declaration
    )
    return re.sub(r"\s+", "", declaration)


def lines_of(header: str, *true: str) -> list[str]:
    """The lines that are compiled where only conditions that hold one of these texts are true."""
    kept, conditions = [], []
    for line in re.sub(r"\\\n", "", header).splitlines():
        if line.startswith("#if"):
            conditions.append(any(text in line for text in true))
        elif line.startswith("#else"):
            conditions[-1] = not conditions[-1]
        elif line.startswith("#endif"):
            conditions.pop()
        elif all(conditions):
            kept.append(line)
    return kept


def declared_by_header() -> dict[str, set[str]]:
    if not HEADER.is_file():
        pytest.skip(f"no {HEADER}")
    found: dict[str, set[str]] = {}
    for line in lines_of(HEADER.read_text(encoding="utf-8"), *TRUE):
        match = re.fullmatch(r"([\w ]+?)((?: __(?:ovld|conv|cnfn|purefn))+) (\w+)(\(.*\);)", line)
        if match:
            result, attributes, name, arguments = match.groups()
            assumed = [ASSUMED[word] for word in attributes.split() if word in ASSUMED]
            assumed = assumed or [builtins.PLAIN]
            if "__conv" in attributes:
                assumed.append("__attribute__((convergent))")
            text = f"{result} {' '.join(assumed)} {name}{arguments}"
            found.setdefault(name, set()).add(normal(text))
    return found


def test_every_overload_and_attribute_is_the_headers():
    header = declared_by_header()
    assert len(header) > 700
    compared = 0
    for name, expected in header.items():
        text = builtins._declared(name, 16)
        if text:
            compared += 1
            assert {normal(line) for line in lines_of(text)} == expected, name
        else:
            assert builtins._LEFT_OUT.fullmatch(name), name
    assert compared > 600


def test_what_the_header_does_not_have_is_not_declared():
    header = declared_by_header()
    names = [*builtins._BY_NAME, *builtins.PLAIN_SIGNATURES]
    names += [f"{kind}_{name}" for name in builtins.ATOMICS for kind in ("atom", "atomic")]
    assert not [name for name in names if name not in header]
    for name in ("convert_int8x", "vload5", "vload_half8_rte", "vload8_rte", "foo"):
        assert builtins.declarations(f"{name}(x)") == builtins.ATTRIBUTES, name


def test_no_kernel_of_ours_needs_the_header():
    texts = [path.read_text() for path in [*KERNELS.glob("*.mako"), *KERNELS.glob("lib/*.cl")]]
    rows = [*UFUNCS.values(), *REDUCTIONS.values(), *FAULTY_BUILTINS]
    texts += [repr(row) for row in rows]
    for text in texts:
        assert builtins.declarations(text) is not None, text[:80]
        # convert_##D is declared where D stands in the source (double4), not where macros make it.
        assert not PASTED_TYPE.search(text), text[:80]


def test_powers_of_floats_are_built_once(pocl, monkeypatch):
    """What is not declared is built with the header, after the compiler has printed its errors."""
    refused = []
    built = compiler._built

    def spied(*arguments):
        try:
            return built(*arguments)
        except Exception as error:
            refused.append(error)
            raise

    monkeypatch.setattr(compiler, "_built", spied)
    x = np.linspace(0.25, 8, 5003)
    for dtype in ("float16", "float32", "float64"):
        given = cf.asarray(x.astype(dtype))
        with cf.config.override(host_us=0, build_after_ms=0):
            # No other test has this program.
            found = np.asarray(cf.power(given, -given * 0.625) * 0.375)
        np.testing.assert_allclose(found, x ** (-x * 0.625) * 0.375, rtol=0.01)
    assert not refused


@pytest.fixture
def options_used(monkeypatch):
    """The options of every program that is built from source."""
    used = []
    built = compiler._built

    def watched(program, handle, options):
        used.append(options)
        return built(program, handle, options)

    monkeypatch.setattr(compiler, "_built", watched)
    return used


def test_generated_kernels_are_built_without_the_header(pocl, options_used, monkeypatch):
    monkeypatch.setattr(program, "_programs", {})
    x = np.linspace(-3, 3, 1000).astype("f4")
    with cf.config.override(build_after_ms=0, host_us=0):
        for dtype in ("f4", "f8", "i8", "c8"):
            y = cf.asarray(x.astype(dtype))
            for wanted in (y.sum(), y * 2 + y.sum(), cf.cumsum(y), y[y != 1], cf.sin(y)):
                cf.evaluate(wanted)
    assert options_used
    assert all("-D_OPENCL_H_" in options for options in options_used)


@pytest.fixture
def intel(device):
    if not device.traits.subgroups_read:
        pytest.skip("only Intel's compiler reads a header of sub-groups for every program")
    return device


def test_programs_read_the_header_of_subgroups_if_they_must(intel, options_used, monkeypatch):
    monkeypatch.setattr(program, "_programs", {})
    macro = f"-D{intel.traits.subgroups_read}"
    for statement, expected, reads in (
        ("x[0] = x[0] + 0.5f;", 3.5, [False]),
        ("x[0] = sub_group_broadcast(x[0].y, 0);", 4, [True]),
        ("\n#ifdef cl_intel_subgroups_long\nx[0] = 7;\n#endif\n", 7, [True]),
    ):
        monkeypatch.setattr(compiler, "_binary_path", lambda *arguments: None)
        options_used.clear()
        assert first_after(intel, statement) == expected, statement
        assert [macro not in options for options in options_used] == reads, statement
    options_used.clear()
    with pytest.raises(KernelBuildError, match="no_function") as caught:
        first_after(intel, "x[0] = no_function(x[0]);")
    os.unlink(caught.value.path)
    # The header may have what is not known here.
    assert [macro not in options for options in options_used] == [False, True]


def first_after(device, statement: str) -> float:
    """What a kernel makes of (3, 4, 0, 0), its first element."""
    source = f"__kernel void work(__global float4 *x) {{ {statement} }}"
    built = program.build(device, source, "work", (None,))
    x = buffers.upload(device, np.array([3, 4, 0, 0], "f4"))
    launch.enqueue(built, (1,), (1,), [x.mem])
    return float(buffers.download(x, np.float32, (4,))[0])


def test_what_is_not_declared_is_built_with_the_header(pocl, options_used, monkeypatch):
    monkeypatch.setattr(program, "_programs", {})
    assert first_after(pocl, "x[0] = dot(x[0], x[0]);") == 25
    assert first_after(pocl, "float dot = 5; x[0] = fmax(x[0], dot);") == 5
    assert ["-D_OPENCL_H_" in options for options in options_used] == [False, True]


def test_sources_that_may_name_subgroups_are_known():
    for text in (
        "get_sub_group_size()", "intel_sub_group_shuffle(x, 0)", "cl_khr_subgroups",
        "#ifdef cl_intel_subgroups", '#  include "mine.h"', "#define float_atomics_enable",
    ):  # fmt: skip
        assert builtins.names_subgroups(text), text
    for text in ("get_group_id(0)", "x[0] = sin(y);", "#define T float"):
        assert not builtins.names_subgroups(text), text


def test_no_kernel_of_ours_names_subgroups():
    for path in [*KERNELS.glob("*.mako"), *KERNELS.glob("lib/*.cl")]:
        assert not builtins.names_subgroups(path.read_text()), path.name


def test_a_wrong_source_is_reported_as_the_header_has_it(pocl, options_used):
    with pytest.raises(KernelBuildError, match="no_function") as caught:
        first_after(pocl, "x[0] = no_function(x[0]);")
    os.unlink(caught.value.path)
    assert "_OPENCL_H_" not in caught.value.log
    assert ["-D_OPENCL_H_" in options for options in options_used] == [True, False]


def test_a_compiler_that_takes_no_declarations_is_asked_once(pocl, options_used, monkeypatch):
    monkeypatch.setattr(program, "_programs", {})
    monkeypatch.setattr(compiler, "_takes_declarations", {})
    monkeypatch.setattr(builtins, "ATTRIBUTES", "no OpenCL C;")
    assert first_after(pocl, "x[0] = x[0] + 1;") == 4
    assert first_after(pocl, "x[0] = x[0] + 2;") == 5
    assert ["-D_OPENCL_H_" in options for options in options_used] == [True, False, False]


def test_programs_are_as_they_would_be_with_the_header(pocl, monkeypatch):
    values = np.array([3, 4, 0, 0], "f4")
    for statement in (
        "x[0] = min(x[0], 3.5f) + max(x[0], 1);",
        "x[0] = convert_float4(abs(convert_int4(x[0]))) + (float4)(clz((uchar)3), 0, 0, 0);",
        "int e; x[0] = ldexp(x[0], 3) + frexp(x[0].x, &e) + e;",
        "x[0] = select(x[0], x[0] + 1, isnan(x[0])) + any(x[0] > 3);",
    ):
        monkeypatch.setattr(program, "_programs", {})
        declared = first_after(pocl, statement)
        with monkeypatch.context() as patched:
            patched.setattr(program, "_programs", {})
            patched.setattr(compiler, "declarations", lambda source: None)
            assert first_after(pocl, statement) == declared != values[0], statement


@pytest.mark.parametrize(
    "macros",
    ["#define LOAD(n) vload##n\n", "#define JOIN(a, b) a##b\n#define LOAD(n) JOIN(vload, n)\n"],
)
def test_names_that_macros_put_together_are_left_to_the_header(macros):
    kernel = "__kernel void k(__global float *x) { x[0] = LOAD(4)(0, x).x; }"
    assert builtins.declarations(macros + kernel) is None
    types = "#define WIDE(T, n) T##4\n#define OF(T) convert_##T(x)\n"
    assert builtins.declarations(types + "float y = sin(x);") is not None
