"""Kernels that somebody wrote, launched beside array code: who sees what, in which order."""

from __future__ import annotations

import random
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import clfuse as cf
from clfuse.runtime.launches import launch
from clfuse.user_kernels.opencl.record_launch import record_launch

pytestmark = pytest.mark.clfuse_only

# One work-item goes over its views element by element, so that even views that overlap have one
# right answer: that of the loop in Python, to the bit in whole numbers, which wrap around.
SMOOTH = """
__kernel void smooth(const TYPE c, const long n, __global const TYPE *x, const long sx,
                     __global TYPE *y, const long sy)
{
    for (long k = 0; k < n; k++) y[k * sy] = c * y[k * sy] + x[k * sx];
}
"""


def smooth(c: Any, x: Any, y: Any) -> None:
    """y = c * y + x, one element after the other, for arrays of clfuse's or NumPy's."""
    if isinstance(y, np.ndarray):
        for k in range(len(y)):
            y[k] = c * y[k] + x[k]
        return
    source = SMOOTH.replace("TYPE", {"f": "double", "i": "long"}[y.dtype.kind])
    arguments = [(c, y.dtype), np.int64(len(y)), (x, "r", "strides"), (y, "rw", "strides")]
    record_launch(source, "smooth", arguments, (1,))


def launches(call: Any) -> int:
    before = cf.stats()["user_launches"]
    call()
    return int(cf.stats()["user_launches"] - before)


@pytest.mark.parametrize("fusion", ["on", "off"])
@pytest.mark.parametrize("schedule", ["cpu", "gpu"])
def test_random_launches_and_array_code_agree_with_numpy(
    schedule: str, fusion: str
) -> None:
    with cf.config.override(schedule=schedule, fusion=fusion, debug=True):
        for seed in range(12):
            play(random.Random(seed))


def play(draw: random.Random) -> None:
    """One program: kernels over random views of three arrays, and array code on them between."""
    expected = [np.arange(-12, 12), np.arange(24).reshape(4, 6), np.full(6, -7)]
    ours: list[Any] = [cf.array(each) for each in expected]
    kept: list[tuple[np.ndarray, Any]] = []

    def view(number: int, length: int) -> tuple[Any, Any]:
        flat = expected[number].reshape(-1), ours[number].reshape(-1)
        longest = (flat[0].size - 1) // max(length - 1, 1)
        step = draw.randint(1, max(longest, 1))
        start = draw.randint(0, flat[0].size - 1 - step * (length - 1))
        one, other = (each[start : start + step * (length - 1) + 1 : step] for each in flat)
        return (one[::-1], other[::-1]) if draw.random() < 0.3 else (one, other)

    for _ in range(draw.randint(4, 14)):
        what = draw.random()
        number = draw.randrange(3)
        if what < 0.6:  # calls, some of which are equal but for their places
            length = draw.randint(1, 5)
            source = draw.randrange(3)
            c = draw.choice([-1, 2, 3])
            for _ in range(draw.choice([1, 1, 3, 6])):
                x, y = view(source, length), view(number, length)
                smooth(c, x[0], y[0])
                smooth(c, x[1], y[1])
        elif what < 0.75:
            for each in (expected, ours):
                each[number][1:] *= 3
        elif what < 0.85:
            other = draw.randrange(3)
            for each in (expected, ours):
                each[number] = each[number] + each[other].sum()
        else:
            kept.append((expected[number] * 2, ours[number] * 2))
            if draw.random() < 0.5:
                kept.append((expected[number].copy(), ours[number].copy()))
        if draw.random() < 0.15:
            np.testing.assert_array_equal(ours[number].get(), expected[number])
    for one, other in [*kept, *zip(expected, ours, strict=True)]:
        np.testing.assert_array_equal(other.get(), one)


def test_a_launch_in_a_jitted_function_takes_the_callers_arrays() -> None:
    def step(np: ModuleType, y: Any, x: Any, c: Any) -> Any:
        smooth(c, x[::2], y[1:4])
        x[0] = y.sum()
        for row in range(3):
            smooth(c, x[row : row + 1], y[row : row + 1])
        return y * 2

    jitted = cf.jit(lambda y, x, c: step(cf, y, x, c))
    expected, ours = np.arange(5.0), cf.arange(5.0)
    x, our_x = np.linspace(0, 1, 6), cf.linspace(0, 1, 6)
    traces = cf.stats()["jit_traces"]
    for c in (0.5, 2.0, -1.0):
        np.testing.assert_allclose(jitted(ours, our_x, c), step(np, expected, x, c), rtol=1e-15)
        np.testing.assert_allclose(ours.get(), expected, rtol=1e-15)
        np.testing.assert_allclose(our_x.get(), x, rtol=1e-15)
    assert cf.stats()["jit_traces"] - traces == 1


def test_calls_over_rows_are_one_launch() -> None:
    a, b = cf.zeros((200, 3)), cf.ones((200, 3))

    def in_order() -> None:
        for row in range(200):
            smooth(1.0, b[row], a[row])
        cf.evaluate(a)

    def shuffled() -> None:
        for row in random.Random(0).sample(range(200), 200):
            smooth(float(row), b[row], a[row])
        cf.evaluate(a)

    def chained() -> None:
        for row in range(1, 8):
            smooth(1.0, a[row - 1], a[row])
        cf.evaluate(a)

    assert launches(in_order) == 1
    assert launches(shuffled) == 1
    expected = np.arange(200.0)[:, None] + np.ones((200, 3))
    np.testing.assert_array_equal(a.get(), expected)
    assert launches(chained) == 7
    expected[:8] = np.cumsum(expected[:8], axis=0)
    np.testing.assert_array_equal(a.get(), expected)
    plan = cf.explain(a + 1)
    assert plan.kernels[0].kind == "map"


def test_a_launch_runs_once_whatever_was_held_of_it_before() -> None:
    code = """__kernel void both(__global long *x, __global long *y)
              { const size_t i = get_global_id(0); y[i] = ++x[i] * 2; }"""
    x = cf.zeros(4, "int64")
    for turn in range(1, 150):  # often enough for code of its own: see graph.recognition
        y = cf.zeros(4, "int64")
        record_launch(code, "both", [(x, "rw"), (y, "rw")], (4,))
        if turn % 2:
            del y
        assert launches(lambda: cf.evaluate(x)) == 1
        if not turn % 2:
            before = cf.stats()["user_launches"]
            np.testing.assert_array_equal(y.get(), np.full(4, 2 * turn))
            assert cf.stats()["user_launches"] == before
    np.testing.assert_array_equal(x.get(), np.full(4, 149))


def test_explain_shows_a_launch_with_its_reason_and_its_copy() -> None:
    a, b = cf.zeros(10), cf.ones(10)
    before = a.copy()
    smooth(1.0, b + 1, a)
    plan = cf.explain(a)
    assert [kernel.kind for kernel in plan.kernels] == ["map", "launch"] or len(plan.kernels) == 3
    launch = plan.kernels[-1]
    assert launch.kind == "launch"
    assert launch.ops == ("1 call of smooth (written as a kernel)",)
    assert "y[k * sy] = c * y[k * sy] + x[k * sx]" in launch.source
    assert any("smooth" in cut.reason for cut in plan.cuts)
    np.testing.assert_array_equal(a.get(), 2.0)
    np.testing.assert_array_equal(before.get(), 0.0)


def test_a_source_that_does_not_build_leaves_all_arrays() -> None:
    a, b = cf.arange(5.0), cf.ones(5)
    cf.evaluate(a, b)
    sums = a + b
    record_launch("__kernel void wrong(__global double *a) { a[0] = missing; }", "wrong",
                  [(b, "rw")], (1,))
    after = b * 2
    for broken in (b, after, b):
        with pytest.raises(cf.KernelBuildError, match="wrong") as caught:
            broken.get()
        assert "missing" in caught.value.log
    np.testing.assert_array_equal(a.get(), np.arange(5.0))
    np.testing.assert_array_equal(sums.get(), np.arange(5.0) + 1)
    others = [cf.sqrt(a), b - 1, a * 3]
    with pytest.raises(cf.KernelBuildError):
        cf.evaluate()
    before = cf.stats()["kernels_launched"]
    cf.evaluate()
    np.testing.assert_array_equal(others[0].get(), np.sqrt(np.arange(5.0)))
    np.testing.assert_array_equal(others[2].get(), np.arange(5.0) * 3)
    assert cf.stats()["kernels_launched"] == before, "what can be computed was"
    with pytest.raises(cf.KernelBuildError):
        others[1].get()


def test_memory_that_cannot_be_had_leaves_all_arrays() -> None:
    # A limit, not the device's: what fits into no allocation is computed on the host before it is
    # refused, which took gigabytes and a minute.
    with cf.config.override(memory_limit=1 << 20):
        a = cf.ones(4)
        huge = cf.broadcast_to(a[:1], ((1 << 20) // 8 + 1,))
        smooth(1.0, cf.zeros(4), a)
        smooth(1.0, (huge * 2)[:4], a)
        with pytest.raises(MemoryError):
            a.get()
    np.testing.assert_array_equal(cf.arange(3.0).get(), np.arange(3.0))


def test_arrays_of_every_dtype_and_views_are_pointers() -> None:
    code = "__kernel void put(__global {0} *x, const long s) {{ x[get_global_id(0) * s] {1}; }}"
    for name, kind, written in (
        ("bool", "uchar", "= 1"), ("int8", "char", "-= 1"), ("uint16", "ushort", "-= 1"),
        ("float16", "ushort", "= 0x3e00"), ("complex64", "float2", "+= (float2)(1, 2)"),
    ):
        array = cf.zeros((3, 2), name)
        expected = np.zeros((3, 2), name)
        record_launch(code.format(kind, written), "put", [(array[::-1, 1], "rw", "strides")], (2,))
        expected[1:, 1] = {"bool": True, "int8": -1, "uint16": 65535, "float16": 1.5,
                           "complex64": 1 + 2j}[name]
        np.testing.assert_array_equal(array.get(), expected)
    pairs = cf.zeros(4, "complex128")
    record_launch(code.format("double", "= 5"), "put", [(pairs.imag[::2], "rw", "strides")], (2,))
    np.testing.assert_array_equal(pairs.get(), [5j, 0, 5j, 0])
    bits = cf.zeros(3, "float64")
    record_launch(code.format("short", "= -1"), "put", [(bits.view("i2"), "rw", "strides")], (4,))
    np.testing.assert_array_equal(bits.get().view("i8"), [-1, 0, 0])


def test_an_array_written_whole_needs_nothing_before() -> None:
    fill = "__kernel void fill(__global long *x, const long c) { x[get_global_id(0)] = c; }"
    x, y = cf.zeros(6, "int64"), cf.zeros((2, 3), "int64").T
    z = cf.zeros(6, "int64")
    for out, number in ((x, 5), (z, 5)):
        record_launch(fill, "fill", [(out, "w"), np.int64(number)], (6,))
    record_launch(fill.replace("*x", "*x, const long s, const long t"), "fill",
                  [(y, "w", "strides"), np.int64(7)], (6,))
    x[2] = 1
    with cf.config.override(debug=True):
        np.testing.assert_array_equal(y.get(), np.full((3, 2), 7))
        np.testing.assert_array_equal(z.get(), np.full(6, 5))
    np.testing.assert_array_equal(x.get(), [5, 5, 1, 5, 5, 5])


def test_every_scalar_type_arrives_also_where_calls_differ() -> None:
    code = """__kernel void keep(__global double *x, const int b, const char c, const ulong u,
                                 const float h, const float f, const double d, const float2 z)
              { x[0] = b; x[1] = c; x[2] = u; x[3] = h; x[4] = f; x[5] = d; x[6] = z.y; }"""
    rows = [
        (np.bool_(True), np.int8(-3), np.uint64(1 << 40), np.float16(1.5), np.float32(0.1),
         np.float64(-0.0), np.complex64(2j)),
        (np.bool_(False), np.int8(127), np.uint64(7), np.float16(-np.inf), np.float32(-1),
         np.float64(np.nan), np.complex64(-3j)),
    ]
    for count in (1, 2):
        x = cf.zeros((count, 7))
        for place in range(count):
            record_launch(code, "keep", [(x[place], "rw"), *rows[place]], (1,))
        with cf.config.override(debug=True):
            expected = [[*map(float, row[:6]), row[6].imag] for row in rows[:count]]
            np.testing.assert_array_equal(x.get(), expected)
            assert np.signbit(x.get()[0, 5])


def test_a_launch_on_another_device_runs_where_its_arrays_are() -> None:
    a = cf.ones(3)
    smooth(1.0, cf.ones(3), a)
    small = cf.stats()["host_evaluations"]
    with cf.config.override(host_us=1000.0):
        smooth(1.0, a[::-1], a)
        np.testing.assert_array_equal(a.get(), [4.0, 4.0, 6.0])
    assert cf.stats()["host_evaluations"] == small, "no launch is calculated on the host"


def test_a_plan_that_comes_back_passes_what_has_changed() -> None:
    code = """__kernel void keep(__global double *x, const int b, const char c, const ulong u,
                                 const float h, const float f, const double d, const float2 z)
              { x[0] += b; x[1] = c; x[2] = u; x[3] = h; x[4] = f; x[5] = d; x[6] = z.y; }"""
    odd = (np.bool_(True), np.int8(-3), np.uint64(1 << 20), np.float16(1.5), np.float32(0.25),
           np.float64(-0.5), np.complex64(2j))  # fmt: skip
    even = (np.bool_(False), np.int8(127), np.uint64(7), np.float16(-2), np.float32(-1),
            np.float64(8), np.complex64(-3j))  # fmt: skip
    with cf.config.override(host_us=0):
        for turn in range(12):
            # One scalar at a time is another than in the turn before; the last turns change all.
            row = [even[n] if n < turn % 8 else odd[n] for n in range(7)]
            x = cf.full((7,), float(turn))
            record_launch(code, "keep", [(x, "rw"), *row], (1,))
            scaled = x * float(turn + 1)
            expected = np.array([turn + int(row[0]), *map(float, row[1:6]), row[6].imag])
            np.testing.assert_array_equal(scaled.get(), expected * (turn + 1))


def test_a_constant_changed_by_another_launch_is_passed_again() -> None:
    x = cf.asarray(np.arange(40.0))
    seen: list[Any] = []
    with cf.config.override(host_us=0):
        for turn in range(12):
            y = (x + 1.0) * (2.5 if turn % 2 else 1.5)
            if turn > 5 and turn % 2:
                device = cf.get_device()
                with launch.observe_launches(device, lambda program, event: seen.append(event)):
                    cf.evaluate(y)
            np.testing.assert_array_equal(y.get(), np.arange(1.0, 41.0) * (1.5, 2.5)[turn % 2])
    assert len(seen) == 3
