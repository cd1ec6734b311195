"""The parameters of kernels that somebody wrote, and the same kernels with others."""

from __future__ import annotations

import numpy as np
import pytest

from clfuse.arrays.conversion import wrap_node
from clfuse.arrays.handle import view_of
from clfuse.codegen.launches import render_launch
from clfuse.codegen.signatures import Replaced, find
from clfuse.schedule.records import UserLaunch
from clfuse.target.traits import DeviceTraits
from clfuse.user_kernels.opencl.raw import formals
from clfuse.user_kernels.opencl.record_launch import record_launch
from tests.support.compiling import kernels_called, odd_names
from tests.support.recording import array, planned

TRAITS = DeviceTraits()


def moved(source: str, *names: str) -> str:
    """The source with `base + 4` for the parameters of these names."""
    found = find(source, "f")
    assert found is not None
    change = Replaced(
        lambda formal: [f"{formal.space} void *base", "const long first"],
        lambda formal: "base + first",
    )
    known = found.definitions[0].formals
    return found.changed([change if each.words[each.place] in names else None for each in known])


@pytest.mark.parametrize(
    ("parameter", "variable"),
    [
        ("__global float *x", "__global float * x"),
        ("global const float4 *restrict x", "global const float4 * restrict x"),
        ("const __global volatile struct a *const x", "const __global volatile struct a * const x"),
        ("__constant uint *x", "__constant uint * x"),
        ("__global float x[]", "__global float ( * x )"),
        ("__global float x[N + 1][4]", "__global float ( * x ) [ 4 ]"),
        ("__global float (*x)[sizeof(int[2])]", "__global float ( * x ) [ sizeof ( int [ 2 ] ) ]"),
        ("__global /* y, */ float // z\n *x", "__global float * x"),
        ("__global float *x __attribute__((aligned(16)))", "__global float * x"),
        ("GLOBAL REAL *x", "GLOBAL REAL * x"),
    ],
)
def test_a_pointer_becomes_a_variable_of_its_own_type(parameter: str, variable: str) -> None:
    macros = "#define GLOBAL __global\n#define REAL float\n"
    source = f"{macros}__kernel void f({parameter}, int n) {{ g(x); }}"
    text = moved(source, "x")
    assert f"{{ {variable} = base + first; g(x); }}" in text
    space = "__constant" if "constant" in parameter else "__global"
    assert f"f({space} void *base, const long first, int n" in text
    assert text.count("\n") == source.count("\n"), "messages of compilers name the author's lines"


def test_all_definitions_are_changed_and_no_other_kernel() -> None:
    source = """
    __kernel void f(__global float *x);  // f(x)
    __kernel void other(__global float *x) { x[0] = "f(x)"[0]; }
    #if 1
    __attribute__((reqd_work_group_size(1, 1, 1))) __kernel void f(__global float *x) { *x = 1; }
    #else
    kernel __attribute__((vec_type_hint(double))) void f(global double *x)
    __attribute__((reqd_work_group_size(1, 1, 1))) { *x = 2; }
    #endif"""
    text = moved(source, "x")
    assert "{ __global float * x = base + first; *x = 1; }" in text
    assert "{ global double * x = base + first; *x = 2; }" in text
    assert "__kernel void other(__global float *x) {" in text
    assert text.count("void f(") == 2, "the prototype has the old parameters"
    assert text.count("\n") == source.count("\n")


@pytest.mark.parametrize(
    "source",
    [
        "#define ARGUMENTS __global float *x\n__kernel void f(ARGUMENTS) {}",
        "#define TAKES(t) __global t *x\n__kernel void f(TAKES(float)) {}",
        "#define MAKE(t) __kernel void f(__global t *x) {}\nMAKE(float)",
        "__kernel void f(\n#ifdef A\n__global float *x\n#else\n__global double *x\n#endif\n) {}",
        "__kernel void f(__global float *x) {} __kernel void g(__global float *x) { f(x); }",
        "#define g f\n__kernel void f(__global float *x) {}",
        "#define get_global_id(n) 0\n__kernel void f(__global float *x) {}",
        "#define UNUSED\n__kernel void f(__global float *x UNUSED) {}",
        "#if A\n#define SPACE __global\n#else\n#define SPACE __constant\n#endif\n"
        "__kernel void f(SPACE float *x) {}",
        "__kernel void f(__global float *x, int n) {} __kernel void f(__global float *x) {}",
        "void f(__global float *x) {}",
        "__kernel void g(void) {}",
        "__kernel void f(__global float *x",
    ],
)
def test_what_cannot_be_changed_with_certainty_is_not(source: str) -> None:
    assert find(source, "f") is None


def test_words_in_comments_and_strings_are_no_directives() -> None:
    source = '/* #define f */ __kernel void f(int n) { printf("#define f(\\"", n); } // f()'
    found = find(source, "f")
    assert found is not None
    assert found.count == 1


def test_parameters_are_told_from_their_types_behind_macros() -> None:
    source = ("#define REAL float\n#define SHARED __local\n"
              "__kernel void f(const REAL a, SHARED REAL *held, __constant REAL *t, float2 z) {}")
    assert [(each.kind, each.mode, each.dtype) for each in formals(source, "f")] == [
        ("scalar", "", np.dtype("f4")), ("local", "", None), ("array", "r", None),
        ("scalar", "", np.dtype("c8")),
    ]


def test_names_that_are_added_are_not_the_sources() -> None:
    source = ("#define o1 7\n__kernel void f(__global double *a0, __global double *x, int call)"
              "{ double t0 = o1; }")
    ours = [wrap_node(array(24)) for _ in range(2)]
    for row in range(3):
        record_launch(source, "f", [
            (view_of(ours[0], (4,), 4 * row, (1,)), "rw"), (ours[1], "r"), np.int32(row)], (4,))
    schedule = planned(ours[0]._storage.node)
    (launch,) = [each for each in schedule.launches if isinstance(each, UserLaunch)]
    rendered = render_launch(launch, TRAITS, lambda value: value)
    assert rendered.name == "f"
    assert rendered.global_size == (4, 3)
    head, _, body = rendered.source.partition("{")
    assert head.splitlines()[1] == (
        "__kernel void f(__global void *a0_, const long o0, const long d0, __global double * x, "
        "__global const int *t2)"
    )
    assert "const long call_ = get_global_id(1);" in body
    assert "int call = *(__global const int *)(t2 + call_);" in body


def test_a_kernel_that_a_program_calls_is_found() -> None:
    assert kernels_called("__kernel void f(int n); kernel void f(int n) { /* f(n) */ g(n); }") == []
    assert kernels_called("__kernel __attribute__((vec_type_hint(int))) void f(int n) {}\n"
                          "__kernel void g() { f (3); }") == ["f"]


def test_a_name_that_is_not_ascii_is_found() -> None:
    assert odd_names("__kernel void f(int n) { /* \u00e9 */ }") == []
    long = "x" * 121
    assert odd_names(f"__kernel void \u00e9(int n) {{}} int {long};") == [long, "\u00e9"]
