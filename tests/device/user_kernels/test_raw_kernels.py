"""ElementwiseKernel, ReductionKernel and RawKernel: CuPy's, in OpenCL C, on hostile values."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import clfuse as cf
from tests.support.hostile import hostile

pytestmark = pytest.mark.clfuse_only

SQUARED = cf.ElementwiseKernel("T x, T y", "T z", "z = (x - y) * (x - y)", "squared")
LARGER = cf.ElementwiseKernel(
    "T x, T y", "T z, bool w", "if (x > y) z = x; else z = y; w = x > y;", "larger"
)


@pytest.fixture(autouse=True)
def checked() -> Any:
    with cf.config.override(debug=True):
        yield


@pytest.fixture(params=["cpu", "gpu"])
def schedule(request: pytest.FixtureRequest) -> Any:
    with cf.config.override(schedule=request.param):
        yield request.param


def pairs(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    values = hostile(dtype)
    x, y = np.meshgrid(values, values)
    return x.ravel(), y.ravel()


def launches(call: Any) -> int:
    before = cf.stats()["kernels_launched"]
    call()
    return int(cf.stats()["kernels_launched"] - before)


# -- element by element ---------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "float16", "float32", "float64"])
def test_a_function_in_c_agrees_on_every_pair_of_hostile_values(dtype: str) -> None:
    x, y = pairs(dtype)
    z, w = LARGER(cf.array(x), cf.array(y))
    assert (z.dtype, w.dtype) == (np.dtype(dtype), np.dtype(bool))
    np.testing.assert_array_equal(w.get(), x > y)
    np.testing.assert_array_equal(z.get(), np.where(x > y, x, y))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_expressions_have_numpys_bits(dtype: str) -> None:
    suffix = "f" if dtype == "float32" else ""
    body = f"""
        const T d = x - y;        // comments, and names of its own
        z = d * d / 3.0{suffix} + 2;
        w = !(d < 0 || x == y) && fabs(y) >= 1 ? -z : fmin(x, y);
        w *= 2;"""
    x, y = pairs(dtype)
    z, w = cf.ElementwiseKernel("T x, T y", "T z, T w", body, "expressions")(cf.array(x), y[0])
    (kernel,) = cf.explain(z, w).kernels
    assert "expressions" not in kernel.source, "NumPy's own functions do it"
    d = x - y[0]
    expected = d * d / x.dtype.type(3) + x.dtype.type(2)
    np.testing.assert_array_equal(z.get(), expected)
    where = np.where(~((d < 0) | (x == y[0])) & (abs(y[0]) >= 1), -expected, np.fmin(x, y[0]))
    np.testing.assert_array_equal(w.get(), where * 2)


def test_kernels_fuse_with_their_producers_and_readers(schedule: str) -> None:
    x, y = cf.linspace(0, 1, 1000), cf.ones(1000)
    cf.evaluate(x, y)
    assert launches(lambda: cf.evaluate(SQUARED(x + y, y) * 2)) == 1
    branch = cf.ElementwiseKernel("T x", "T z", "if (x > 1) z = 0; else z = sqrt(x)", "branch")
    plan = cf.explain((branch(x + y) * 2 - branch(x)).sum())
    assert plan.kernels[0].kind == "reduce"
    assert plan.kernels[0].ops.count("kernel_branch") == 2
    with cf.config.override(fusion="off"):
        assert launches(lambda: cf.evaluate(SQUARED(x, y))) == 1, "a kernel is one operation"
    both = LARGER(x * 2, y)
    assert launches(lambda: cf.evaluate(*both)) == 1
    expected = np.where(np.linspace(0, 1, 1000) * 2 > 1, np.linspace(0, 1, 1000) * 2, 1)
    np.testing.assert_array_equal(both[0].get(), expected)


def test_operands_broadcast_and_outputs_are_written_in_place() -> None:
    x, y = cf.arange(3.0), cf.arange(4.0)
    expected = (np.arange(3.0)[:, None] - np.arange(4.0)) ** 2
    np.testing.assert_array_equal(SQUARED(x[:, None], y).get(), expected)
    out = cf.zeros((4, 6))
    target = out.T[::2]
    assert SQUARED(x[:, None], y, target) is target
    whole = np.zeros((4, 6))
    whole.T[::2] = expected
    np.testing.assert_array_equal(out.get(), whole)
    inside = cf.ElementwiseKernel("T x", "T y", "if (x > 2) y += x", "inside")
    inside(cf.arange(4.0)[::-1], out[0, 2:])  # what it does not assign stays
    whole[0, 2:][[0]] += 3.0
    np.testing.assert_array_equal(out.get(), whole)
    for shape in ((0,), (), (1,)):
        ones = SQUARED(cf.ones(shape), -1)
        assert ones.shape == shape
        np.testing.assert_array_equal(ones.get(), np.full(shape, 4.0))


def test_the_body_knows_its_index_and_how_many_there_are() -> None:
    place = cf.ElementwiseKernel("T x", "int64 z", "z = x + 100 * i + 10000 * _ind.size()", "place")
    x = np.arange(6.0).reshape(2, 3)
    expected = x + 100 * np.arange(6).reshape(2, 3) + 60000
    np.testing.assert_array_equal(place(cf.array(x)).get(), expected)
    np.testing.assert_array_equal(place(cf.array(x).T).get()[1], [1 + 200 + 60000, 4 + 300 + 60000])
    fill = cf.ElementwiseKernel("", "T z", "z = n - i", "fill")
    np.testing.assert_array_equal(fill(cf.zeros(4, "int8")).get(), [4, 3, 2, 1])


def test_raw_arrays_are_indexed_by_the_body() -> None:
    body = "z = x[n - 1 - i] + k * y"
    turned = cf.ElementwiseKernel("raw T x, T y, int32 k", "T z", body, "turned")
    x, y = np.arange(12.0).reshape(3, 4), np.arange(3.0)
    ours = turned(cf.array(x).T, cf.array(y)[:, None] + cf.zeros(4), 2)
    np.testing.assert_array_equal(ours.get(), x.T.ravel()[::-1].reshape(3, 4) + 2 * y[:, None])
    stretched = turned(cf.array(x), cf.broadcast_to(cf.array(y)[::-1], (2, 3)), -1)
    np.testing.assert_array_equal(stretched.get(), x.ravel()[5::-1].reshape(2, 3) - y[::-1])
    scatter = cf.ElementwiseKernel("raw int64 at, raw T x", "raw T z", "z[at[i]] = x[i]", "scatter")
    z = cf.zeros((3, 4), "float16")
    halves = cf.ElementwiseKernel("raw T x, T y", "T z", "z = vload_half(i, x) + y", "halves")
    scatter(cf.array([0, 2]), cf.array([5.0, 7.0]), w := cf.zeros(6)[::2], size=2)
    np.testing.assert_array_equal(w.get(), [5, 0, 7])
    np.testing.assert_array_equal(halves(z + 1.5, z).get(), np.full((3, 4), 1.5, "float16"))
    scatter(cf.array([0, 2]), cf.array([5.0, 7.0]), w, size=0)
    np.testing.assert_array_equal(w.get(), [5, 0, 7])
    new = scatter(cf.array([0, 2, 2]), cf.array([5.0, 6.0, 6.0]), size=3)
    np.testing.assert_array_equal(new.get(), [5, 0, 6])
    with pytest.raises(ValueError, match="z, or size="):
        scatter(cf.array([0, 2]), cf.array([5.0, 7.0]))


def test_preambles_of_two_kernels_may_define_the_same_names() -> None:
    def kernel(name: str, factor: int) -> Any:
        preamble = f"#define FACTOR {factor}\nstatic double f(double x) {{ return FACTOR * x; }}"
        return cf.ElementwiseKernel("T x", "T y", "y = f(x) + FACTOR", name, preamble=preamble)

    x = cf.arange(4.0)
    both = kernel("one", 2)(x) + kernel("other", 3)(x)
    assert launches(lambda: cf.evaluate(both)) == 1
    np.testing.assert_array_equal(both.get(), np.arange(4.0) * 5 + 5)


PREAMBLES = [
    ("__constant const double tab[2] = {1.0, 2.0};", "tab[x > 1] * x"),
    ("constant unsigned int tab[] = {1, 2}, more = 3;", "tab[x > 1] * x + more"),
    ("enum { A, B = 5, C }; typedef enum { D = 1 } letter;", "x + C + (letter)D"),
    ("struct p { T lo, hi; };\nstatic T lo(struct p q) { return q.lo - q.hi; }",
     "lo((struct p){x, 1})"),
    ("static T f(T x);\nstatic T g(T x) { return f(x) + 1; }\nstatic T f(T x) { return 2 * x; }",
     "g(x)"),
    ("#define MAKE(f, k) static T f(T x) { return k * x; }\nMAKE(twice, 2)\nMAKE(thrice, 3)",
     "twice(x) + thrice(x)"),
    ("/* g() { */ __attribute__((overloadable)) T f(T x) { return x; } // f(", "f(x)"),
]


@pytest.mark.parametrize(("preamble", "expression"), PREAMBLES)
def test_what_preambles_declare_meets_no_other_preamble(preamble: str, expression: str) -> None:
    def kernel(name: str, more: str) -> Any:
        body = f"y = {expression}; z = 2 * y"
        return cf.ElementwiseKernel("T x", "T y, T z", body, name, preamble=preamble + more)

    one, other = kernel("one", ""), kernel("other", "\n#define OTHER")
    x = np.arange(4) + 0.5
    alone = one(cf.array(x))[0].get()
    singles = one(cf.array(x, "float32"))[1]
    both = sum(one(cf.array(x)), singles) + other(cf.array(x))[0]
    assert len(cf.explain(both).kernels) == 1, "one source has all of them, in two types"
    np.testing.assert_array_equal(both.get(), 6 * alone)
    fold = cf.ReductionKernel("T x", "T y", expression, "a + b", f"T x = a; y = {expression}", "0",
                              "fold", preamble=preamble)
    np.testing.assert_array_equal(fold(cf.array(x)), one(cf.array(alone.sum()))[0])


NAMES = (
    "n0 i0 j rest row low high length count first chunks parts place result mapped folded".split()
)


@pytest.mark.parametrize("name", NAMES)
def test_parameters_may_have_any_name_that_is_not_c(name: str) -> None:
    x = np.arange(12.0).reshape(3, 4)
    ours = cf.array(x)
    body = f"if ({name} > 2) y = {name} + c; else y += {name}"
    fused = cf.ElementwiseKernel(f"T {name}, T c", "T y", body, "sin")
    np.testing.assert_array_equal(fused(ours, 3, cf.ones((3, 4))), np.where(x > 2, x + 3, x + 1))
    raw = cf.ElementwiseKernel(f"T {name}, raw T x", "T y", f"y = x[i] + {name}", "double")
    np.testing.assert_array_equal(raw(ours.T, ours), np.arange(12.0).reshape(4, 3) + x.T)
    raw = cf.ElementwiseKernel(f"raw T x, T {name}", "T y", f"y = x[i] + {name}")
    np.testing.assert_array_equal(raw(ours, 2, size=12), x.ravel() + 2)
    long = cf.ReductionKernel(
        f"T {name}, T x", "T y", f"{name} + x", "a > b ? a : b > -9 ? b : a", "y = a", "0", "float")
    values = np.arange(1000.0)
    np.testing.assert_array_equal(long(cf.array(values), 1), 1000.0)
    np.testing.assert_array_equal(long(ours, ours, axis=0), 2 * x[2])


def test_names_that_c_has_a_meaning_for_are_refused() -> None:
    for name in ("half", "global", "uint", "größe"):
        with pytest.raises(ValueError, match=name):
            cf.ElementwiseKernel(f"T {name}", "T y", "y = 1")


def test_bool_is_the_one_of_c(schedule: str) -> None:
    x = cf.array([0.5, 2.0, 0.0, 256.0])
    expected = [True, True, False, True]
    for body in ("y = x", "if (x > 1) y = x; else y = x"):
        np.testing.assert_array_equal(cf.ElementwiseKernel("T x", "bool y", body)(x), expected)
    raw = cf.ElementwiseKernel("raw T x", "raw bool y", "y[i] = x[i]")(x, size=4)
    np.testing.assert_array_equal(raw.get().view(np.uint8), expected)
    inverse = cf.ElementwiseKernel("raw bool x", "T y", "y = x[i] ? 0.5 : ~x[n - 1]")
    np.testing.assert_array_equal(inverse(raw, cf.zeros(4)), [0.5, 0.5, -2, 0.5])
    whole = cf.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0")
    assert bool(whole(cf.ones(256, bool)))
    assert bool(cf.ReductionKernel("T x", "bool y", "x", "a + b", "y = a", "0")(x[:1]))


def test_bodies_leave_early_end_in_comments_and_have_directives() -> None:
    x = np.arange(12.0).reshape(3, 4)
    ours, limits = cf.array(x), np.where(x > 3, 1, x)
    for way in ("return;", "continue;"):
        body = f"y = 1; if (x > 3) {way} y = x; // it's done"
        np.testing.assert_array_equal(cf.ElementwiseKernel("T x", "T y", body)(ours), limits)
        body = f"#pragma unroll\nfor (int k = 0; k < 2; k++) y = 1;\nif (x[i] > 3) {way} y = x[i]"
        raw = cf.ElementwiseKernel("raw T x", "T y", body)(ours, size=12)
        np.testing.assert_array_equal(raw, limits.ravel())
        out = cf.full((3, 4), 7.0)
        cf.ElementwiseKernel("T x", "T y", f"if (x > 3) {way} y = x")(ours, out)
        np.testing.assert_array_equal(out, np.where(x > 3, 7, x))
    fold = cf.ReductionKernel(
        "T x", "T y", "x // map", "a > b ? a : b // fold", "if (a > 3) return; y = a // post", "0")
    assert (float(fold(ours)), float(fold(ours[0]))) == (0, 3)
    fixed = cf.ElementwiseKernel("T x", "T y", "y = k * x", loop_prep="T k = 3;", after_loop="y++;")
    np.testing.assert_array_equal(fixed(ours), 3 * x + 1)


def test_bodies_ask_for_places_and_sizes_as_with_cupy() -> None:
    x = np.arange(12.0).reshape(3, 4)
    ours = cf.array(x)
    places = x + np.arange(3)[:, None] * 100 + np.arange(4) * 1000
    body = "y = {} + _ind.get()[0] * 100 + _ind.get()[1] * 1000"
    fused = cf.ElementwiseKernel("T x", "T y", body.format("x"))(ours * 1)
    np.testing.assert_array_equal(fused, places)
    raw = cf.ElementwiseKernel("raw T x", "T y", body.format("x[i]"))(ours, cf.zeros((3, 4)))
    np.testing.assert_array_equal(raw, places)
    turned = cf.ElementwiseKernel(
        "raw T x", "T y", "y = x[x.size() - 1 - i] + x.shape()[1] * 10 + x.ndim * 100")
    np.testing.assert_array_equal(turned(ours.T, size=12), x.T.ravel()[::-1] + 230)
    macro = cf.ElementwiseKernel("T x", "T y", "y = x + AT", preamble="#define AT i * _ind.size()")
    np.testing.assert_array_equal(macro(ours), 13 * x)
    for fold in ("a + b", "a + (b)"):
        post = "y = a / (_in_ind.size() / _out_ind.size())"
        mean = cf.ReductionKernel("T x", "T y", "x", fold, post, "0", "mean")
        np.testing.assert_array_equal(mean(ours, axis=1), x.mean(1))
        np.testing.assert_array_equal(mean(cf.arange(2000.0)), 999.5)


def test_lazy_scalars_are_taken_as_numpys_scalars_are() -> None:
    singles = cf.arange(4, dtype="float32")
    mean = cf.arange(12.0).mean()
    expected = np.arange(4, dtype="f")
    np.testing.assert_array_equal(SQUARED(singles, mean), (expected - np.float32(5.5)) ** 2)
    np.testing.assert_array_equal(L2(singles, mean), np.float32(8.306623))
    for scalar in (mean, np.float64(5.5)):  # what small programs have in its place
        np.testing.assert_array_equal(SQUARED(scalar, scalar + 1), 1.0)
    raw = cf.ElementwiseKernel("raw T x, T y", "T z", "z = x[i] + y")
    np.testing.assert_array_equal(raw(singles, mean, size=4), expected + np.float32(5.5))
    AXPY(1, 4, (mean, singles * 1, singles, 4), shared_mem=16)
    np.testing.assert_array_equal(singles, expected * np.float32(6.5))


def test_kernels_are_traced_by_jit() -> None:
    raw = cf.ElementwiseKernel("raw T x, T c", "T z", "z = x[i] * c", "scale")

    @cf.jit
    def step(x: Any, c: Any) -> Any:
        return SQUARED(x, c) + raw(x, cf.zeros(3) + c)

    for c in (1.0, -2.5):
        x = np.arange(3.0)
        np.testing.assert_array_equal(step(cf.array(x), c).get(), (x - c) ** 2 + x * c)


def test_wrong_calls_are_errors_at_the_call() -> None:
    x, y = cf.arange(3.0), cf.arange(3, dtype="float32")
    for arguments, error, message in (
        ((x,), TypeError, "wrong number of arguments: 1"),
        ((x, y), TypeError, "type is mismatched: y is float32, not float64"),
        ((x, cf.arange(2.0)), ValueError, "broadcast"),
        ((x, x, cf.zeros(4)), ValueError, "shape"),
        ((x, x, np.zeros(3)), TypeError, "ndarray"),
        ((1, 2), ValueError, "undecided"),
        ((x, "s"), TypeError, "y: str"),
        ((x, x, cf.broadcast_to(x[:1], 3)), ValueError, "read-only"),
    ):
        with pytest.raises(error, match=message):
            SQUARED(*arguments)
    with pytest.raises(ValueError, match="size"):
        SQUARED(x, x, size=3)
    with pytest.raises(ValueError, match="block_size"):
        SQUARED(x, x, block_size=0)
    for text, error in (
        ("T", ValueError), ("T i", ValueError), ("T x, T x", ValueError), ("floaty x", TypeError),
        ("object x", TypeError), ("raw", ValueError), ("T *x", ValueError),
    ):
        with pytest.raises(error):
            cf.ElementwiseKernel(text, "T z", "z = 1", "wrong")
    with pytest.raises(ValueError, match="type T"):
        cf.ElementwiseKernel("int32 x", "T z", "z = x", "unknown")(cf.arange(3, dtype="int32"))
    broken = cf.ElementwiseKernel("T x", "T z", "z = nowhere(x)", "broken")(x)
    with pytest.raises(cf.KernelBuildError) as caught:
        broken.get()
    assert "nowhere" in caught.value.log
    np.testing.assert_array_equal((x + 1).get(), [1.0, 2.0, 3.0])


# -- reductions -----------------------------------------------------------------------------------


L2 = cf.ReductionKernel("T x, T y", "T z", "(x - y) * (x - y)", "a + b", "z = sqrt(a)", "0", "l2")


def test_a_reduction_that_numpy_has_is_fused_before_and_behind(schedule: str) -> None:
    x, y = np.arange(24.0).reshape(2, 3, 4), np.arange(4.0)
    ours = cf.array(x), cf.array(y)
    cf.evaluate(*ours)
    for axis in (None, 0, -1, (0, 2), (), 1):
        for keepdims in (False, True):
            result = L2(*ours, axis=axis, keepdims=keepdims)
            expected = np.sqrt(((x - y) ** 2).sum(axis=axis, keepdims=keepdims))
            assert result.shape == expected.shape
            np.testing.assert_allclose(result.get(), expected, rtol=1e-15)
    assert launches(lambda: cf.evaluate(L2(ours[0] + 1, ours[1], axis=1) * 2)) == 1
    out = cf.zeros((4, 3))
    L2(*ours, out.T[:, ::-1], axis=0)
    np.testing.assert_allclose(out.get(), np.sqrt(((x - y) ** 2).sum(0))[:, ::-1].T, rtol=1e-15)
    with pytest.raises(ValueError, match="shape"):
        L2(*ours, out, axis=0)
    with pytest.raises(np.exceptions.AxisError):
        L2(*ours, axis=3)


def test_unusual_identities_and_empty_axes_count_as_in_a_loop() -> None:
    largest = cf.ReductionKernel("T x", "T y", "x", "max(a, b)", "y = a + 1", "3", "largest")
    x = np.array([[1, 7], [2, 0]], "int16")
    np.testing.assert_array_equal(largest(cf.array(x), axis=1).get(), [8, 4])
    np.testing.assert_array_equal(largest(cf.zeros((0, 2), "int16"), axis=0).get(), [4, 4])
    assert largest(cf.zeros((0, 2), "int16"), axis=1).shape == (0,)
    for fold in ("max(a, b)", "a > b ? a : b"):  # NaN stays, as in NumPy's
        floats = cf.ReductionKernel("T x", "T y", "x", fold, "y = a", "-INFINITY")
        rows = floats(cf.array([[1, np.nan, 3], [4, 5, 6]]), axis=1)
        np.testing.assert_array_equal(rows.get(), [np.nan, 6])
    plain = cf.ReductionKernel("T x", "T y", "x", "min(a, b)", "y = a", "", "smallest")
    with pytest.raises(ValueError, match="no identity"):
        plain(cf.zeros((0, 2)), axis=0)
    np.testing.assert_array_equal(plain(cf.array(x), axis=0).get(), [1, 0])


FIRST = "static int first(int a, int b) { return a < b && a >= 0 || b < 0 ? a : b; }"


@pytest.mark.parametrize("shape", [(5,), (3, 4), (4, 1000), (70_000,)])
def test_any_other_fold_is_a_launch_in_two_stages_if_long(
    shape: tuple[int, ...]
) -> None:
    x = np.random.default_rng(0).integers(-5, 6, shape)
    product = cf.ReductionKernel(
        "T x, T c", "float32 y", "x % 7 == 0 ? 1 : x", "c_times(a, b)", "y = a / 2", "1", "modular",
        reduce_type="int64", preamble="static long c_times(long a, long b) { return a * b % 1009; }"
    )

    def modular(values: np.ndarray) -> np.ndarray:
        total = 1
        for value in np.fmod(values, 7).tolist():
            total = np.fmod(total * (value or 1), 1009)
        return np.float32(np.trunc(total / 2))

    ours = cf.array(x)
    np.testing.assert_array_equal(product(ours, 3).get(), modular(x.ravel()))
    if len(shape) > 1:
        expected = [modular(row) for row in x]
        np.testing.assert_array_equal(product(ours, 3, axis=1).get(), expected)
        flipped = product(ours[::-1, ::2], 3, axis=0, keepdims=True).get()
        np.testing.assert_array_equal(flipped[0], [modular(column) for column in x[:, ::2].T])


def test_a_fold_may_be_over_a_type_of_its_own() -> None:
    place = cf.ReductionKernel(
        "T x, int64 at", "int64 y", "make(x, at)", "better(a, b)", "y = a.at",
        "make(-INFINITY, -1)", "argmax", reduce_type="struct best", preamble="""
        struct best { float x; long at; };
        static struct best make(float x, long at)
        { struct best s; s.x = x; s.at = at; return s; }
        static struct best better(struct best a, struct best b)
        { return b.x > a.x ? b : a; }""")
    x = np.random.default_rng(1).random((6, 9), "float32")
    ours = place(cf.array(x), cf.arange(9), axis=1)
    np.testing.assert_array_equal(ours.get(), x.argmax(1))


def test_the_type_that_is_folded_is_named_in_c() -> None:
    x = np.array([2**31 - 1, 1], "int32")
    for kind, expected in (("int", -(2**31)), ("long long", 2**31), ("int64", 2**31)):
        total = cf.ReductionKernel("T x", "int64 y", "x", "a + b", "y = a", "0", reduce_type=kind)
        assert total(cf.array(x)) == expected


# -- whole kernels --------------------------------------------------------------------------------


AXPY = cf.RawKernel("""
    /* y += a * x, but (for the test) through local memory */
    __kernel __attribute__((vec_type_hint(float)))
    void axpy(const float a, __global const float *restrict x, __global float *y,
              __local float *held, const int n)
    {
        const int i = get_global_id(0);
        held[get_local_id(0)] = i < n ? x[i] : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (i < n) y[i] += a * held[get_local_id(0)];
    }""", "axpy")


def test_a_raw_kernel_runs_in_order_with_array_code() -> None:
    x, y = cf.arange(10, dtype="float32"), cf.ones(10, "float32")
    before = y * 1
    AXPY((3,), (4,), (2, x + 1, y, 10), shared_mem=16)
    y *= 2
    AXPY(3, 4, (np.float64(-1), x, y, np.uint8(5)), shared_mem=16)
    expected = (1 + 2 * (np.arange(10, dtype="f") + 1)) * 2
    expected[:5] -= np.arange(5)
    np.testing.assert_array_equal(y.get(), expected)
    np.testing.assert_array_equal(before.get(), np.ones(10))
    kinds = [kernel.kind for kernel in cf.explain(before + 1).kernels]
    assert "launch" not in kinds


def test_arrays_out_of_order_are_copied_and_written_back() -> None:
    x, y = np.arange(24, dtype="f").reshape(4, 6), np.zeros((6, 4), "f")
    ours = cf.array(x), cf.zeros((6, 4), "float32")
    AXPY(24, 1, (1.0, ours[0].T, ours[1][::-1], 24), shared_mem=4)
    y[::-1] += x.T
    np.testing.assert_array_equal(ours[1].get(), y)
    row = ours[1][2]
    AXPY(4, 1, (1.0, x[0], row, 4), shared_mem=4)
    y[2] += x[0, :4]
    np.testing.assert_array_equal(ours[1].get(), y)


def test_raw_kernels_in_three_dimensions_with_local_arrays() -> None:
    code = """kernel void cube(global long *out) {
        local long shared_number;
        if (get_local_id(0) + get_local_id(1) + get_local_id(2) == 0) shared_number = START;
        barrier(CLK_LOCAL_MEM_FENCE);
        out[(get_global_id(2) * 4 + get_global_id(1)) * 2 + get_global_id(0)] =
            shared_number + get_global_id(1) STEP; }"""
    cube = cf.RawKernel(code, "cube", options=("-DSTART=100", "-D STEP=* 10"))
    out = cf.zeros((3, 4, 2, 2), "int64")
    for place in range(3):  # many calls of three dimensions are launches of their own
        cube((1, 2, 1), (2, 2, 2), (out.reshape(3, 16)[place],))
    expected = np.broadcast_to(100 + 10 * np.arange(4)[:, None], (3, 2, 4, 2)).reshape(3, 4, 2, 2)
    np.testing.assert_array_equal(out.get(), expected)


def test_sizes_that_a_device_refuses_are_errors_before_a_launch() -> None:
    add = "__kernel {} void add(__global double *x) {{ x[get_global_id(0)] += 1; }}"
    x, y = cf.zeros(8), cf.zeros(8)
    cf.evaluate(x, y)
    cf.RawKernel(add.format(""), "add")((2,), (4,), (x,))
    for attribute, items in (("", 1 << 20), ("__attribute__((reqd_work_group_size(2, 1, 1)))", 4)):
        z = x * 1
        cf.RawKernel(add.format(attribute), "add")((1,), (items,), (z,))
        with pytest.raises(cf.KernelBuildError, match="group"):
            cf.evaluate(x, z)
    cf.RawKernel(add.format(attribute), "add")((4,), (2,), (x,))
    np.testing.assert_array_equal(x.get(), np.full(8, 2.0))


def test_kernels_are_copied_and_pickled() -> None:
    x = cf.arange(12.0).reshape(3, 4)
    for kernel in (SQUARED, L2):
        for again in (copy.deepcopy(kernel), pickle.loads(pickle.dumps(kernel))):
            np.testing.assert_array_equal(again(x, 1), kernel(x, 1))
    add = "__kernel void add(__global double *x) { x[get_global_id(0)] += ONE; }"
    pickle.loads(pickle.dumps(cf.RawKernel(add, "add", ("-DONE=1",))))((12,), (1,), (x,))
    np.testing.assert_array_equal(x, np.arange(1.0, 13).reshape(3, 4))


def test_integers_of_all_spellings_and_numpys_sizes() -> None:
    for kind, dtype in (
        ("unsigned short int", "uint16"), ("long int", "int64"), ("long unsigned", "uint64"),
        ("signed char", "int8"), ("signed", "int32"), ("const unsigned", "uint32"),
    ):
        code = f"kernel void f({kind} a, global {kind.replace('const', '')} *y) {{ y[0] = a; }}"
        y = cf.zeros(1, dtype)
        for value in (3, np.int64(4), np.array([5])):
            cf.RawKernel(code, "f")((np.int64(1),), np.int32(1), (value, y))
            assert y[0] == np.asarray(value).item()


def test_wrong_raw_kernels_and_calls_are_errors() -> None:
    for code, error in (
        ("void f(int a) {}", ValueError), ("kernel void g(int a) {}", ValueError),
        ("kernel void f(image2d_t a) {}", TypeError),
    ):
        with pytest.raises(error):
            cf.RawKernel(code, "f")
    with pytest.raises(ValueError, match="option"):
        cf.RawKernel("kernel void f() {}", "f", options=("--std=c++11",))
    x = cf.zeros(4, "float32")
    for arguments, error, message in (
        ((1, x, x), TypeError, "4 arguments"),
        ((x, x, x, 4), TypeError, "scalar"),
        ((1, x, np.zeros(4, "f"), 4), TypeError, "written"),
        ((1, x, x, 4.0), TypeError, "integer"),
        ((1j, x, x, 4), TypeError, "real"),
        ((1, x, cf.broadcast_to(x[:1], 4), 4), ValueError, "read-only"),
    ):
        with pytest.raises(error, match=message):
            AXPY(1, 4, arguments, shared_mem=16)
    with pytest.raises(ValueError, match="shared_mem"):
        AXPY(1, 4, (1, x, x, 4))
    with pytest.raises(ValueError, match="dimensions"):
        AXPY((1, 1, 1, 1), 4, (1, x, x, 4), shared_mem=16)
    np.testing.assert_array_equal(x.get(), np.zeros(4))


@pytest.mark.parametrize("host_us", [0.0, 50.0])
def test_rows_that_launches_write_are_taken_before_they_run(
    host_us: float,
) -> None:
    code = "__kernel void more(__global double *a) { a[get_global_id(0)] += 1; }"
    more = cf.RawKernel(code, "more")
    with cf.config.override(host_us=host_us):
        a = cf.zeros((300, 10))
        cf.evaluate(a)
        before = cf.stats()["user_launches"]
        for row in range(300):
            more((10,), (1,), (a[row],))
        assert a.sum() == 3000
        assert cf.stats()["user_launches"] - before == 1
