"""Raw kernels on parts of arrays, and many calls of one: their pointers begin elsewhere then."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import clfuse as cf

pytestmark = pytest.mark.clfuse_only


def launches(call: Any) -> int:
    before = cf.stats()["user_launches"]
    call()
    return int(cf.stats()["user_launches"] - before)


def rows(kernel: Any, ours: Any, *more: Any, local: int = 0) -> int:
    """The launches of one call a row."""

    def every() -> None:
        for row in range(len(ours)):
            kernel((1,), (ours.shape[1],), (ours[row], *[each[row] for each in more]),
                   shared_mem=local)
        cf.evaluate(ours)

    return launches(every)


def test_calls_keep_attributes_and_locals_of_their_kernel() -> None:
    turn = cf.RawKernel("""
        __kernel __attribute__((reqd_work_group_size(4, 1, 1))) void turn(__global int *x)
        {
            __local int held[4];
            const int i = get_local_id(0);
            held[i] = x[i];
            barrier(CLK_LOCAL_MEM_FENCE);
            x[i] = held[3 - i];
        }""", "turn")
    x = np.arange(24, dtype="i4").reshape(6, 4)
    ours = cf.array(x)
    assert rows(turn, ours) == 1
    np.testing.assert_array_equal(ours, x[:, ::-1])
    turn((1,), (4,), (ours[2],))
    x[2] = x[2, ::-1]
    np.testing.assert_array_equal(ours, x[:, ::-1])


@pytest.mark.parametrize("kind", ["char", "double", "double4", "float8"])
def test_local_pointers_are_aligned_as_their_elements_are(kind: str) -> None:
    code = """__kernel void where(__global ulong *x, __local char *odd, __local KIND *held)
    {
        odd[get_local_id(0)] = 1;
        held[get_local_id(0)] = (KIND)(1);
        x[get_local_id(0)] = (ulong)held % sizeof(KIND);
    }"""
    where = cf.RawKernel(code, "where", (f"-DKIND={kind}",))
    ours = cf.ones((3, 2), "uint64")
    assert rows(where, ours, local=256) == 1
    np.testing.assert_array_equal(ours, np.zeros((3, 2)))


def test_pointers_of_all_kinds_begin_elsewhere() -> None:
    mixed = cf.RawKernel("""
        #define READ __global const
        struct pair { float a, b; };
        __kernel void mixed(__global float x[], __constant float *t, READ float (*restrict m)[2],
                            const struct pair p, __global float2 *z)
        {
            const int i = get_global_id(0);
            x[i] = t[i] + m[i][1] * p.a + p.b;
            if (i == 0) z[0] += (float2)(1, 2);
        }""", "mixed")
    x, z = cf.zeros((5, 2), "float32"), cf.zeros(6, "complex64")
    t, m = (cf.arange(count, dtype="float32") for count in (20, 40))
    expected = np.zeros((5, 2))
    for row in (3, 0, 4):
        pair = np.array([row, 0.5], "f4").view("u8")[0]
        mixed(2, 1, (x[row], t[3 * row :], m[8 * row :], pair, z[row + 1 :]))
        for i in range(2):
            expected[row, i] = 3 * row + i + (8 * row + 2 * i + 1) * row + 0.5
    np.testing.assert_array_equal(x, expected)
    np.testing.assert_array_equal(z, np.array([0, 1, 0, 0, 1, 1]) * (1 + 2j))


HIDDEN = [
    "#define ARGUMENTS __global int *x, __global const int *y\n"
    "__kernel void add(__global int *x, __global const int *y);\n"
    "__kernel void add(ARGUMENTS) {{ {} }}",
    "#define MAKE(t) __kernel void add(__global t *x, __global const t *y) {{ {} }}\nMAKE(int)",
    "__kernel void add(__global int *x,\n#ifndef MORE\n__global const int *y\n#endif\n) {{ {} }}",
    "#define get_local_size(n) 1\n#define get_global_id(n) get_local_id(n)\n"
    "__kernel void add(__global int *x, __global const int *y) {{ {} }}",
]


@pytest.mark.parametrize("code", HIDDEN)
def test_views_are_written_back_where_macros_hide_parameters(
    code: str
) -> None:
    body = "x[get_global_id(0)] += y[get_global_id(0)];"
    add = cf.RawKernel(code.format(body), "add")
    x, y = np.zeros((3, 4), "i4"), np.arange(12, dtype="i4").reshape(3, 4)
    ours, other = cf.array(x), cf.array(y)
    assert rows(add, ours, other) == 3
    np.testing.assert_array_equal(ours, y)
    add((1,), (4,), (ours[1], other[2]))
    y[1] += y[2]
    np.testing.assert_array_equal(ours, y)


def test_a_kernel_whose_name_its_program_uses_is_left_alone() -> None:
    both = cf.RawKernel("""
        static void more(__global int *x) { x[get_global_id(0)] += 1; }
        __kernel void f(__global int *x) { more(x); }
        struct own { int f; };
        __kernel void g(__global int *x) { struct own o; o.f = 2; x[get_global_id(0)] *= o.f; }
        """, "f")
    ours = cf.zeros((3, 4), "int32")
    assert rows(both, ours) == 3
    np.testing.assert_array_equal(ours, np.ones((3, 4)))
