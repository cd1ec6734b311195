"""Functions and methods of small arrays on the host are NumPy's own: every row of the table, on
hostile values, with what may go wrong around them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from clfuse._core import loading
from clfuse.arrays.host_array import DEFER
from clfuse.eager import table
from clfuse.eager.fronts import _reader
from tests.support.hostile import hostile
from tests.support.marks import compiled
from tests.support.releases import IS_BEFORE_2_4

pytestmark = pytest.mark.clfuse_only

DTYPES = ("bool", "int8", "int64", "uint64", "float16", "float32", "float64", "complex128")


@pytest.fixture(autouse=True)
def small(xp: ModuleType) -> Iterator[None]:
    with xp.config.override(host_us=50), np.errstate(all="warn", under="ignore"):
        yield


def operands(dtype: str, make: Any) -> dict[str, Any]:
    """Arrays by name; `make` is given new NumPy arrays. Of `ordinary` float64, few are odd."""
    if dtype == "ordinary":
        values: Any = np.random.default_rng(7).random(24) * 9 - 3
    else:
        values = np.resize(hostile(dtype), 24)
    found = {
        "a": values, "b": values[::-1].copy(), "P": values.reshape(4, 6), "e": values[:0],
        "s": np.sort(values), "v": values[:3], "w": values[3:6], "z": values[5].reshape(()),
        "A": values[:9].reshape(3, 3), "ix": np.array([3, 0, -1, 3]), "m": np.arange(24) % 3 == 0,
        "M": np.arange(24).reshape(4, 6) % 4 > 1, "c": np.arange(24) % 2, "n": np.arange(24) % 7,
    }  # fmt: skip
    made = {name: make(np.array(value)) for name, value in found.items()}
    made["T"] = made["P"].T
    made["r"] = made["a"][::-2]
    return made


UNARY = "a", "P", "T", "r", "e", "z"
REDUCED = (*UNARY, "P, 1", "T, -1", "P, axis=0", "P, (0, 1)", "a, 3", "P, axis=0, keepdims=True")
JOINED = "[a, b]", "(P, P)", "[r, r]", "[a, P]", "[]", "[e, v]", "[a, [1, 2]]", "[v, 2]"
MATRICES = "A", "P", "v", "A[None]"
PRODUCTS = "a, b", "P, P", "T, P", "a, P", "v, A", "a, 2", "z, z", "a, [1, 2]"

CALLS: dict[Any, tuple[str, ...]] = {
    **dict.fromkeys(
        (np.sum, np.prod, np.max, np.min, np.any, np.all, np.mean, np.var, np.std, np.ptp,
         np.nansum, np.nanprod, np.nanmax, np.nanmin, np.nanmean, np.nanvar, np.nanstd,
         np.count_nonzero),
        REDUCED,
    ),
    **dict.fromkeys((np.argmax, np.argmin, np.nanargmax, np.nanargmin), (*UNARY, "P, 1", "a, 3")),
    **dict.fromkeys((np.cumsum, np.cumprod, np.nancumsum, np.nancumprod),
                    (*UNARY, "P, 1", "T, axis=0", "a, 0, 'f4'", "P, 3")),
    **dict.fromkeys((np.trace, np.triu, np.tril), ("A", "P, 1", "T, -1", "a", "P[None]")),
    np.copy: (*UNARY, "T, 'F'", "P, order='K'"),
    **dict.fromkeys(
        (np.fft.fft, np.fft.ifft, np.fft.rfft, np.fft.irfft, np.fft.hfft, np.fft.ihfft),
        (*UNARY, "P, 9", "T, None, 0", "r, n=4, norm='ortho'", "a, 0", "P, 4, 5", "a, 5000000"),
    ),
    **dict.fromkeys(
        (np.fft.fft2, np.fft.ifft2, np.fft.rfft2, np.fft.irfft2, np.fft.fftn, np.fft.ifftn,
         np.fft.rfftn, np.fft.irfftn),
        ("P", "T", "A", "P, (3, 8)", "P, s=(3, 8), axes=(1, 0)", "e", "a", "P, (4000, 4000)",
         "P, (np.int64(4000), 4000)"),
    ),
    **dict.fromkeys((np.fft.fftshift, np.fft.ifftshift), (*UNARY, "P, 1", "T, (0, 1)", "a, 3")),
    **dict.fromkeys((np.concatenate, np.stack), (*JOINED, "[P, P], 1", "[T, T], axis=-1")),
    **dict.fromkeys((np.vstack, np.hstack, np.dstack, np.column_stack), JOINED),
    np.roll: ("a, 3", "P, 1, axis=0", "T, (1, 2), (0, 1)", "a, 1.5"),
    np.linalg.norm: ("a", "P", "T, axis=1", "P, 'nuc'", "a, 3", "P, 1, 0"),
    np.linalg.vector_norm: ("a", "P", "T, axis=1", "P, ord=1"),
    np.diff: ("a", "P", "T, axis=0", "a, 2", "a, -1", "z"),
    **dict.fromkeys((np.flatnonzero, np.argwhere, np.nonzero), UNARY),
    np.ediff1d: ("a", "P", "e"),
    np.unpackbits: ("c.astype('u1')", "M.astype('u1'), 1", "c.astype('u1'), count=5", "a",
                    "P.astype('u1'), axis=0, bitorder='little'"),
    np.resize: ("a, 30", "P, (2, 3)", "P, 5", "e, 3", "a, -1", "a, (0, 2)"),
    **dict.fromkeys((np.ascontiguousarray, np.asfortranarray), (*UNARY, "P[:, ::2]", "A.T")),
    np.histogramdd: ("P.T", "(v, w)", "(v, w), 3", "(v, w), (2, 3)", "(v, a)", "n, 4"),
    np.packbits: ("m", "a", "M, 1", "M, axis=0"),
    np.nan_to_num: (*UNARY, "a, nan=3"),
    np.unwrap: ("a", "P", "a, period=3"),
    np.round: ("a", "P, 1", "T, -1", "a, decimals=2", "m"),
    np.array_equal: ("a, a", "a, b", "a, P", "a, [1, 2]", "a, 2"),
    np.append: ("a, 1", "a, b", "P, P, 0", "P, a, 1", "a, [1, 2]"),
    np.average: ("a", "P, 1", "P, axis=0, weights=n[:4]", "a, weights=n", "a, weights=v"),
    np.trapezoid: ("a", "a, s", "P", "P, axis=0", "a, v"),
    np.vdot: PRODUCTS,
    np.linalg.vecdot: (*PRODUCTS, "P, P, axis=0"),
    np.linalg.matmul: PRODUCTS,
    **{
        function: (*UNARY, "P, axis=1", "T, axis=0, include_initial=True", "a, dtype='f4'")
        for function in table.ROWS if function.__name__ in ("cumulative_sum", "cumulative_prod")
    },
    np.vander: ("v", "v, 2", "w, 4, True", "P", "e"),
    np.histogram2d: ("n, c", "n, c, 3", "n, c, (2, 3)", "n, c, [2, [0, 1]]", "n, v", "e, e"),
    **{
        function: (*PRODUCTS, "A, v", "A[None], v", "P, P, axis=0", "v, w, dtype='f4'", "T, a[:6]")
        for function in table.ROWS if function.__name__ in ("vecdot", "matvec", "vecmat")
        and function is not np.linalg.vecdot
    },
    np.cross: ("v, w", "A, w", "a, b", "v, [1, 2, 3]"),
    np.insert: ("a, 3, 1", "a, ix, 2", "P, 1, 5, axis=0", "a, 99, 1"),
    np.extract: ("m, a", "M, P", "m, v"),
    np.ravel_multi_index: ("(n, n), (7, 7)", "(n, n), (3, 3)", "(n, c), (9, 2), 'clip'"),
    np.unravel_index: ("n, (3, 3)", "n, 7", "n, (2, 2)", "3, (2, 2)", "m, (3, 3)"),
    np.delete: ("a, 3", "a, ix", "P, 1, 0", "P, slice(2), 1", "a, 99", "a, [1, 2]"),
    np.compress: ("m, a", "[True, False], P, 0", "m, v"),
    np.where: ("m, a, b", "m, a, 0", "M, P, v[:1]", "m", "M", "a, 1, 2", "m, P, a", "m, a"),
    np.select: ("[m, ~m], [a, b]", "[m], [a], 5", "[m], [a, b]"),
    np.piecewise: (
        "a, [m, ~m], [1., 2.]", "a, [m], [1, 2]", "a, m, [3., abs]", "a, [m], [1, 2, 3]",
    ),
    np.isclose: ("a, b", "a, a + 1", "P, a", "a, 1, equal_nan=True"),
    np.allclose: ("a, b", "a, a", "P, a"),
    np.clip: ("a, 0, 1", "a, None, b", "P, 1, None", "a, min=0, max=b", "a, v, 1", "m, 0, 1"),
    np.choose: ("c, [a, b]", "c, (1, 2)", "n, [a, b]", "c, P"),
    np.take: ("a, ix", "P, 1, 1", "P, ix, axis=0, mode='clip'", "a, 99", "P, [[0, 1]]"),
    np.take_along_axis: ("a, ix, 0", "P, n[:6][None], 0", "P, ix, 0"),
    np.repeat: ("a, 2", "P, 3, 1", "P, 2, axis=0", "a, -1", "a, True"),
    np.tile: ("a, 2", "P, (2, 1, 2)", "z, 3", "a, 0"),
    np.linalg.outer: ("v, w", "[1, 2], [3.]", "A, v", "e, v"),
    **dict.fromkeys((np.outer, np.kron), ("v, w", "A, v", "P, 2", "e, v")),
    **dict.fromkeys((np.convolve, np.correlate), ("a, v", "v, a, 'same'", "a, [1, 2]", "P, v")),
    **dict.fromkeys((np.dot, np.inner), PRODUCTS),
    np.tensordot: ("P, P", "A, v, 1", "P, T, 1", "P, P, ((0,), (0,))", "P, v"),
    np.einsum: ("'i,i', a, b", "'ij,kj->ik', P, P", "'ij->ji', P", "'ii', A", "'ij,jk', P, T",
                "'i,j', v, w", "'i,i', a, v"),
    **dict.fromkeys((np.argsort, np.sort), (*UNARY, "P, 0", "a, kind='stable'", "P, None", "a, 3")),
    **dict.fromkeys((np.argpartition, np.partition), ("a, 3", "P, 2, 0", "a, (1, 5)", "a, 99")),
    np.searchsorted: ("s, a", "s, 1", "s, a, 'right'", "s, [1, 2]", "P, a", "a, b, sorter=n"),
    np.bincount: ("n", "c, minlength=5", "n, a", "n, weights=a.real", "a"),
    **dict.fromkeys((np.unique_all, np.unique_counts, np.unique_inverse), ("a", "P", "n", "e")),
    np.unique: ("a", "P", "n", "a, return_counts=True", "n, True, return_inverse=True",
                "P, axis=0", "e", "[1, 2]"),
    np.sort_complex: ("a", "P"),
    np.gradient: ("a", "P", "a, 2", "P, axis=1", "v[:1]"),
    **dict.fromkeys((np.median, np.nanmedian), (*UNARY, "P, 1", "P, axis=(0, 1), keepdims=True")),
    np.lexsort: ("(a, n)", "[n, c]", "(a, v)"),
    np.corrcoef: ("P", "P, rowvar=False", "a"),
    np.histogram_bin_edges: ("a", "a, 5", "a, 5, (0, 3)", "v, 'auto'"),
    np.poly: ("v", "A", "v[:0]"),
    **dict.fromkeys((np.polyder, np.polyint), ("v", "v, 2", "v, -1")),
    np.roots: ("v", "P", "e"),
    np.array_equiv: ("a, a", "a, P", "P, v[:1]", "v, [1, 2, 3]"),
    **dict.fromkeys((np.diag, np.diagflat), ("v", "v, 1", "A", "P, -1", "e")),
    **dict.fromkeys((np.sinc, np.iscomplex, np.isreal, np.fix, np.isneginf, np.isposinf), UNARY),
    np.angle: ("a", "T", "a, True", "a, deg=True"),
    np.meshgrid: ("v, w", "v, w, v", "v, 2", "v, w, indexing='ij'", "v, w, sparse=True"),
    np.linalg.trace: ("A", "P, offset=1", "v"),
    np.linalg.matrix_norm: ("A", "T", "P, ord='nuc'", "v"),
    np.linalg.matrix_power: ("A, 3", "A, -1", "A, 1", "A, 0", "P, 2", "A, 2.5"),
    np.linalg.multi_dot: ("[P, T, P]", "(v, A, w)", "[A]", "[A, v]"),
    **dict.fromkeys((np.intersect1d, np.union1d, np.setdiff1d, np.setxor1d, np.isin),
                    ("a, b", "n, c", "n, [1, 2]", "P, v", "e, n", "c, n, assume_unique=True")),
    np.digitize: ("a, s", "a, [1, 2, 3]", "n, n"),
    **dict.fromkeys((np.percentile, np.quantile, np.nanpercentile, np.nanquantile),
                    ("a, .5", "a, [.2, 1.]", "P, .3, axis=1", "a, 200", "e, .5", "a, n / 9",
                     "a, .4, method='nearest'")),
    np.cov: ("P", "a", "a, b", "P, rowvar=False, ddof=0"),
    **dict.fromkeys((np.polyadd, np.polysub, np.polymul, np.polydiv), ("v, w", "a, v", "v, 2")),
    np.polyval: ("v, a", "v, 2", "v, P"),
    np.interp: ("a, s, b", "a, [0, 1], [2, 3]", "1., s, a", "a, s, v", "a, s, b, left=0.5"),
    np.polyfit: ("n, a, 2", "n, a, 1, w=c", "n, v, 1", "n, a, 1, full=True"),
    np.histogram: ("a", "n, 3", "n, 5, (0, 9)", "n, [0, 2, 4]", "n, weights=a", "n, n"),
    **dict.fromkeys(
        (np.linalg.cholesky, np.linalg.cond, np.linalg.det, np.linalg.eig, np.linalg.eigh,
         np.linalg.eigvals, np.linalg.eigvalsh, np.linalg.inv, np.linalg.matrix_rank,
         np.linalg.pinv, np.linalg.qr, np.linalg.slogdet, np.linalg.svd, np.linalg.svdvals),
        MATRICES,
    ),
    np.block: ("[[v, w]]", "[[A], [A]]", "a", "[a, b]", "[[v, w], [a]]", "[A[0], [1, 2]]"),
    np.asarray_chkfinite: (*UNARY, "n", "[1, 2]"),
    np.unique_values: ("a", "P", "n", "e"),
    np.linalg.solve: ("A, v", "A, A", "P, v", "A, a"),
    np.linalg.lstsq: ("P, P", "A, v", "A, v, None", "a, v"),
}  # fmt: skip
"""What every row of the table is called with."""

CALLS_OF_METHODS = {
    **{row.method: CALLS[function] for function, row in table.ROWS.items() if row.method},
    "copy": (*UNARY, "T, 'F'"),
    "flatten": (*UNARY, "T, 'F'"),
    "astype": ("a, 'f4'", "P, int", "T, 'i1'", "a, 'U9'", "a, object", "a, 'f8', casting='safe'"),
    "compress": ("a, m", "P, [True, False], 0", "v, m"),
    "dot": PRODUCTS,
    "choose": ("c, [a, b]", "c, 1, 2", "n, [a, b]", "c, P"),
    "tolist": UNARY,
    "tobytes": (*UNARY, "T, 'F'"),
    "item": (*UNARY, "a, 3", "P, 1, 2", "P, (1, 2)", "a, 99", "v[:1]"),
}


def description(value: Any) -> Any:
    """All that a program sees of a value, but whose array it is."""
    if isinstance(value, tuple):
        return type(value).__name__, [description(item) for item in value]
    if hasattr(value, "tolist") and not isinstance(value, np.generic):
        array = np.asarray(value)
        layout = "F" if value.flags.f_contiguous and not value.flags.c_contiguous else "C"
        return "array", str(array.dtype), array.shape, repr(array.tolist()), layout
    return type(value).__name__, repr(value)


def told(call: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any, list[Any]]:
    """The answer of a call, what is seen of it or of the error, and its warnings."""
    answer = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            answer = call(*args, **kwargs)
        except Exception as error:
            seen: Any = type(error), str(error)
        else:
            seen = DEFER if answer is DEFER else description(answer)
    return answer, seen, sorted({(str(w.message), w.category.__name__) for w in caught})


def arguments(text: str, space: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return eval(f"(lambda *args, **kwargs: (args, kwargs))({text})", {"np": np}, space)


def arrays_in(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple | list):
        for item in value:
            yield from arrays_in(item)
    elif hasattr(value, "shape") and not isinstance(value, np.generic):
        yield value




def compare(xp: ModuleType, reference: Any, row: table.Row, calls: tuple[str, ...]) -> None:
    """The front, with nothing behind it, with NumPy; each call has to be taken for one of the
    dtypes."""
    reference = table.IN_PLACE_OF.get(reference, reference)
    front = _reader(loading.load(), lambda *args, **kwargs: DEFER, reference, row)
    answered = set()
    for dtype in ("ordinary", *DTYPES):
        for text in calls:
            theirs = operands(dtype, lambda array: array)
            ours = operands(dtype, xp.asarray)
            args, kwargs = arguments(text, ours)
            made, seen, warned = told(front, *args, **kwargs)
            where = f"{reference.__name__}({text}) of {dtype}"
            if seen is DEFER:
                continue
            answered.add(text)
            their_args, their_kwargs = arguments(text, theirs)
            _, expected, expected_warnings = told(reference, *their_args, **their_kwargs)
            if IS_BEFORE_2_4 and expected[0] is TypeError and seen[0] is not TypeError:
                continue  # a later NumPy has the parameter
            assert seen == expected, where
            assert warned == expected_warnings, where
            for array in arrays_in(made):
                for given in arrays_in((*args, *kwargs.values())):
                    shares = np.shares_memory(np.asarray(array), np.asarray(given))
                    assert array is given or not shares, where
    assert answered, f"{reference.__name__} is never answered"


@compiled
@pytest.mark.parametrize("function", table.ROWS, ids=lambda f: f.__name__)
def test_a_function_gives_what_numpys_own_gives(xp: ModuleType, function: Any) -> None:
    compare(xp, function, table.ROWS[function], CALLS[function])


@compiled
@pytest.mark.parametrize("name", table.METHODS)
def test_a_method_gives_what_numpys_own_gives(xp: ModuleType, name: str) -> None:
    compare(xp, getattr(np.ndarray, name), table.METHODS[name], CALLS_OF_METHODS[name])


def home_of(function: Any) -> ModuleType:
    """The module of NumPy's that a program takes the function from."""
    name = function.__name__
    return next(m for m in (np, np.linalg, np.fft) if getattr(m, name, None) is function)


@compiled
def test_the_answers_are_there_at_the_call(xp: ModuleType) -> None:
    """Nothing is evaluated, and no kernel launched, for any function of the table."""
    space = operands("ordinary", xp.asarray)
    expected = operands("ordinary", lambda array: array)
    for function, calls in CALLS.items():
        before = xp.stats()
        name, text = function.__name__, calls[0]
        module: Any = {np: xp, np.linalg: xp.linalg, np.fft: xp.fft}[home_of(function)]
        args, kwargs = arguments(text, space)
        args_of_numpy, kwargs_of_numpy = arguments(text, expected)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _, seen, _ = told(getattr(module, name), *args, **kwargs)
            assert seen == told(function, *args_of_numpy, **kwargs_of_numpy)[1], name
        after = xp.stats()
        for counted in ("plans_made", "host_evaluations", "kernels_launched", "fallbacks"):
            assert after[counted] == before[counted], name


VIEWS = (
    "P.T", "P.T.T", "P.transpose(1, 0)", "np.transpose(P)", "np.transpose(P, (1, 0))",
    "P.swapaxes(0, -1)", "P.reshape(6, 4)", "P.reshape((2, -1))", "np.reshape(P, (3, 8))",
    "P.ravel()", "P.T.ravel()", "np.ravel(T)", "P.T.reshape(-1)", "P[1:].T[::2]",
    "P.reshape(2, 2, 6)",
    "P[::2].reshape(2, 6)", "P[:, ::2].reshape(-1)", "P[None].squeeze()", "P.squeeze()",
    "P[:, None]", "P[..., 1]", "P[..., None].T", "P[1:, :1].squeeze()", "np.squeeze(P[:1])",
    "P.reshape(24)[5:9]", "P.T[1][::-1]", "P.reshape(2, 12).T.reshape(3, 4, 2)", "P.reshape(7, 3)",
    "P.transpose(0)", "P.swapaxes(0, 5)", "P.squeeze(0)", "P.reshape(-1, -1)", "r.reshape(3, 4)",
    "P.reshape(4, 6, order='F')", "e.reshape(0, 5)", "z.reshape(1, 1)", "P[1:1].T", "z.T",
    "P.diagonal()[1:]", "P.real.T", "np.atleast_2d(a)[0]", "P.view()[1].reshape(2, 3)",
    "np.moveaxis(P, 0, 1)", "np.moveaxis(P, (0, 1), (1, 0))", "np.moveaxis(P, 0, 5)",
    "np.rollaxis(P, 1)", "np.rollaxis(P.T, 1, 0)", "np.rollaxis(P, 3)",
    "np.expand_dims(P, 1)[:, 0]", "np.expand_dims(P, (0, -1))[0, ..., 0]", "np.expand_dims(P, 7)",
    "np.flipud(P)[1:]", "np.fliplr(P.T)",
    "np.fliplr(a)", "np.rot90(P)", "np.rot90(P, 2)[1:]", "np.rot90(P.T, -1)", "np.rot90(a)",
    "np.atleast_1d(P)", "np.atleast_2d(P[0])", "np.atleast_3d(P)[1:]", "np.atleast_1d(z)",
    "np.matrix_transpose(P)[1:]", "np.linalg.matrix_transpose(P)", "np.matrix_transpose(a)",
    "np.flip(P, 0)[1:].T", "P.T[1:][1:][:, 1:][::-1].T[1:].T[::-1][:2].T[0]",
)  # fmt: skip


@pytest.mark.parametrize("text", VIEWS)
def test_a_view_sees_what_numpys_view_sees(xp: ModuleType, text: str) -> None:
    seen = []
    for module in (np, xp):
        space = operands("ordinary", module.asarray)
        space["P"][0, 0] = 7  # it may have been held until now
        answer, *rest = told(eval, text, {"np": module, **space})
        steps: list[Any] = [rest]
        if answer is not None:
            steps += [answer.strides, answer.base is space["P"], answer.flags.writeable]
            space["P"][1] = -1
            steps.append(description(answer))
            if answer.flags.writeable:
                answer[...] = 2
                answer += 1
            space["P"] *= 3
            steps += [description(answer), description(space["P"]), description(answer.copy())]
        seen.append(steps)
    assert seen[0] == seen[1]


OPTIONS = (
    "np.add(a, b, out=o)", "np.add(a, 1, out=(o,))", "np.add(o, o[::-1], out=o)",
    "np.add(a[1:], o[:-1], out=o[1:])", "np.multiply(2, a, out=o)", "np.sqrt(a, out=o)",
    "np.add(a, b, out=o, where=m)", "np.sqrt(a, where=m, out=o)", "np.add(a, b, dtype='f4')",
    "np.add(a, b, dtype=np.float32, casting='unsafe')", "np.add(P, P.T[0, 0], order='F')",
    "np.add(a, v, out=o)", "np.add(P, v[:1], out=o)", "np.add(a, b, out=v)", "np.add(a, b, o)",
    "np.add(a, b, out=x)", "np.divmod(a, b)", "np.modf(a)", "np.frexp(a)", "np.maximum(0, a)",
    "np.add(a, [1, 2])", "np.less(a, b, out=m)", "np.add(1, 1, out=o)", "np.add(a, b, foo=1)",
    "np.divide(a, 0, out=o)", "np.divide(o, 0, out=o, where=m)", "np.power(n, -1)",
    "np.add(P[:, :1], v)", "np.equal(n, 2**70)", "np.add(n, 2**70)", "np.add(a, P)",
    "np.add.reduce(P)", "np.add.reduce(P, axis=(0, 1))", "np.add.reduce(P, 1, keepdims=True)",
    "np.maximum.reduce(e)", "np.maximum.reduce(a, initial=9)", "np.add.reduce(P, where=M)",
    "np.multiply.accumulate(a)", "np.add.accumulate(P, 1)", "np.subtract.outer(v, w)",
    "np.add.outer(P, 2)", "np.add.at(o, ix, 1)", "np.add.at(o, ix, a[:4])", "np.negative.at(o, ix)",
    "np.add.at(o, 99, 1)", "np.maximum.at(o, n, b)", "np.divide.at(o, ix, 0)",
    "np.matmul(P, P.T)", "np.matmul(P, P)", "np.add.reduce(a, out=z)", "o.fill(3)", "o.sort()",
    "o.fill(1j)", "o.put(ix, [1, 2])", "o.partition(3)", "P.sort(0)", "o.sort(5)", "T.sort()",
    "np.copyto(o, a)", "np.copyto(o, a, where=m)", "np.copyto(o, 1j)", "np.copyto(o[1:], o[:-1])",
    "np.put(o, ix, 5)", "np.putmask(o, m, b)", "np.place(o, m, [1, 2])", "np.fill_diagonal(A, 4)",
    "np.fill_diagonal(o, 4)", "np.copyto(x, a)",
)  # fmt: skip


TO_AN_OUT = (
    "np.clip(a, -2, 2, out=o)", "np.clip(o, a, None, out=o)", "o.clip(-1, 1, out=o)",
    "np.clip(o[:-1], 0, a[1:], out=o[1:])", "np.sum(P, axis=0, out=o[:6])",
    "P.sum(axis=0, out=o[:6])", "np.sum(P, 0, out=o[:6], keepdims=False)", "np.sum(a, out=z)",
    "np.cumsum(a, out=o)", "np.cumsum(o, out=o[::-1])", "np.cumprod(P, 1, out=P)",
    "np.mean(P, axis=1, out=o[:4])", "P.min(axis=0, out=o[:6])", "P.max(1, out=o[::6])",
    "np.any(P, axis=0, out=m[:6])", "np.argmax(P, axis=0, out=n[:6])",
    "np.matmul(A, A, out=A)", "np.take(a, ix, out=o[:4])",
    "np.take(o, ix, out=o[:4], mode='clip')", "np.concatenate([v, w], out=o[:6])",
    "np.round(a, 1, out=o)", "np.add.reduce(P, out=o[:6])", "np.multiply.accumulate(a, out=o)",
    "np.einsum('ij,jk', A, A, out=A)", "np.median(P, axis=0, out=o[:6])",
    "np.percentile(P, 30, axis=0, out=o[:6])", "np.nanmax(P, axis=0, out=o[:6])",
    "np.sum(a, out=None)", "np.stack([v, w], 1, out=o[:6].reshape(3, 2))",
)  # fmt: skip
"""Functions that write to an `out`, and give it back."""

if loading.load() is not None:  # else they are recorded, and added up in another order
    TO_AN_OUT = (*TO_AN_OUT, "np.dot(A, v, out=o[:3])", "np.matmul(A, v, out=o[:3])")

REFUSED_OUTS = (
    "np.dot(A, A, out=P[:3, :3])", "np.dot(A, v, out=o)", "np.sum(P, axis=0, out=v)",
    "np.cumsum(a, out=x)", "np.clip(a, 0.5, 1.5, out=n)", "np.linalg.norm(a, out=o)",
    "np.take(a, [99], out=o[:1])", "np.concatenate([v, w], out=o)", "np.mean(a, out=v[:0])",
)  # fmt: skip


@pytest.mark.parametrize("text", [*OPTIONS, *TO_AN_OUT, *REFUSED_OUTS])
def test_what_is_written_to_is_written_as_by_numpy(xp: ModuleType, text: str) -> None:
    for dtype in ("ordinary", "int64", "float32"):
        seen = []
        for module in (np, xp):
            space = operands(dtype, module.array)
            o = space["o"] = space["a"][::-1].copy()
            space["x"] = o[:]
            space["x"].flags.writeable = False
            held = o.copy(), module.asarray(o) + 0
            _, *rest = told(eval, text, {"np": module, **space})
            every = [description(space[name]) for name in ("o", "a", "P", "A", "T", "z", "m", "v")]
            seen.append((rest, every, [description(item) for item in held]))
        theirs, ours = [rest[0] for rest, *_ in seen]
        if isinstance(theirs[0], type):  # what an error says is tested elsewhere
            theirs, ours = theirs[0], ours[0]
        assert ours == theirs, dtype
        assert seen[0][1:] == seen[1][1:], dtype


@compiled
@pytest.mark.parametrize("text", TO_AN_OUT)
def test_what_is_written_to_an_out_is_there(xp: ModuleType, text: str) -> None:
    """Nothing is recorded, so that nothing that comes later is."""
    space = operands("ordinary", xp.array)
    space["o"] = space["a"][::-1].copy()
    before = xp.stats()["nodes_recorded"]
    answer = eval(text, {"np": xp, **space})
    assert xp.stats()["nodes_recorded"] == before
    if answer.shape and "None" not in text.partition("out=")[2]:
        answer[...] = 0
        assert any(not np.asarray(space[name]).all() for name in "oPAmn")


def test_an_out_keeps_what_numpy_would_warn_about(xp: ModuleType) -> None:
    """The operand is the `out`: it is needed once more where the call is made again."""
    for module in (np, xp):
        x = module.array([1e200, 1e200, 3.0])
        with pytest.warns(RuntimeWarning, match="overflow"):
            found = module.cumprod(x, out=x).tolist()
        assert found == x.tolist() == [1e200, np.inf, np.inf]
        y = module.array([1e200, 1e200, 4.0])
        with module.errstate(over="raise"), pytest.raises(FloatingPointError):
            module.cumprod(y, out=y).tolist()


INDICES = (
    "m", "ix", "[0, 2]", "ix, ", "a > 1", "n", "n[::-1]", "ix[None]", "m[:3]", "m[::-1]", "99", "v",
)
INDICES_OF_ROWS = ("M", "n % 4", "n % 4, n % 6", "n % 4, 1", "1, n % 6", "n % 4, slice(None, 2)",
                   "..., n % 6", "None, n % 4", "M[:, 0]", "slice(None), M[0]", "M[0]", "n")


@pytest.mark.parametrize("name", ["a", "r", "P", "T"])
def test_arrays_as_indices_read_and_write_as_numpys(xp: ModuleType, name: str) -> None:
    values = "5", "2.5", "True", "a[:1]", "v[0]", "{}[{}]", "b[:4]", "1j", "np.ones(1)", "b[:2]"
    is_recorded = loading.load() is None
    for text in INDICES if name in "ar" else INDICES_OF_ROWS:
        for dtype in ("ordinary", "int64", "bool"):
            for value in ("", *values):
                seen = []
                for module in (np, xp):
                    space = operands(dtype, module.array)
                    whole = space["P"] if name == "T" else space["a"] if name == "r" else None
                    code = f"{name}[{text}]"
                    if value:
                        code = f"{name}.__setitem__(({text}), {value.format(name, text)})"
                    _, found, warned = told(eval, code, {"np": module, **space})
                    if isinstance(found[0], type):
                        found = found[0]
                    elif is_recorded and not value and text.startswith(("...", "slice(None)")):
                        found = found[:-1]  # in C order, where NumPy has the chosen axis first
                    every = description(space[name]), whole is None or description(whole)
                    seen.append((found, warned, every))
                assert seen[0] == seen[1], (code, dtype)


@compiled
def test_large_results_of_small_arrays_are_recorded(xp: ModuleType) -> None:
    x, few = xp.asarray(np.arange(1000.0)), xp.asarray(np.arange(3.0))
    x[0] = 0  # used in parts, so that a little more is done at the call
    large = (
        lambda: xp.add.outer(x, x), lambda: xp.outer(x, x), lambda: x[:, None] + x,
        lambda: xp.add(x[:, None], x, dtype="f4"), lambda: xp.where(x[:, None] > 1, x, x[:, None]),
        lambda: xp.repeat(x, 10_000), lambda: x.repeat(10_000), lambda: xp.tile(few, (500, 500)),
        lambda: xp.kron(x, x), lambda: xp.clip(x, x[:, None], 9.0), lambda: xp.diag(x),
        lambda: xp.cov(x[:, None]), lambda: xp.meshgrid(x, x)[0],
    )  # fmt: skip
    for number, call in enumerate(large):
        assert call()._storage.node.buffer is None, number
    small = (
        lambda: xp.add.outer(few, x), lambda: xp.outer(few, few), lambda: xp.repeat(x, 2),
        lambda: xp.where(x > 1, x, 0), lambda: xp.tile(few, 9), lambda: xp.add.outer(x[:9], few),
    )
    for number, call in enumerate(small):
        assert call()._storage.node.buffer is not None, number


def test_values_of_sets_are_sorted(xp: ModuleType) -> None:
    """Where NumPy promises no order, on the host as on the device."""
    for make in (np.asarray, lambda values: np.asarray(values) + 0):
        x = xp.asarray(make([3, 1, 2, 1, 0]))
        assert xp.unique_values(x).tolist() == [0, 1, 2, 3]


def test_whoever_iterates_sees_what_is_written_meanwhile(xp: ModuleType) -> None:
    for module in (np, xp):
        x = module.asarray(np.arange(6.0))
        seen = []
        for place, item in enumerate(x):
            seen.append(float(item))
            if place + 1 < 6:
                x[place + 1] += item
        assert seen == [0, 1, 3, 6, 10, 15]
        rows = list(x.reshape(2, 3))
        rows[1][0] = -1
        assert x[3] == -1
        assert [type(row) is module.ndarray for row in rows] == [True, True]
        with pytest.raises(TypeError, match="0-d"):
            iter(x[0:1].reshape(()))


def test_fronts_say_what_they_stand_for(xp: ModuleType) -> None:
    import inspect
    import pickle

    for name in ("where", "sum", "concatenate", "argsort"):
        function = getattr(xp, name)
        assert function.__name__ == name
        assert inspect.signature(function).parameters.keys() >= {"where": {"x"}}.get(name, set())
        assert pickle.loads(pickle.dumps(function)) is function
    assert xp.ndarray.sum.__doc__
    assert xp.ndarray.T.__doc__
