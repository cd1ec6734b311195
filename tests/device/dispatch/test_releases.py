"""What differs between releases of NumPy is what the installed one does, whichever that is.

Each line runs under NumPy and under clfuse: the same value or class of error, and the same
warnings, at the user's line. A line may be an error in one release, a warning in another and
neither in a third; what the installed NumPy lacks altogether, clfuse may have.
"""

from __future__ import annotations

import subprocess
import sys
import warnings
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from clfuse import numpy_releases

SETUP = """
u8 = m.arange(3, dtype='u1')
i4 = m.arange(3, dtype='i4')
f2 = m.zeros(2, 'f2')
f4 = m.arange(3, dtype='f4')
f8 = m.array([3.0, m.nan, 1.0, -2.0, 7.0])
c8 = m.array([3 + 1j, m.nan, 1 + 2j, complex(m.nan, 2), 1j * m.inf, 2])
c16 = m.ones(3, 'c16')
one = m.ones((2, 2))
mask = m.array([True, False, True])
"""

LINES = {
    "attributes that are set in place": """
x = m.zeros(6); x.shape = (2, 3); r = x
x = m.zeros(6); x.shape = (5, 3); r = x
x = m.zeros(6, 'u4'); x.dtype = 'f4'; r = x
x = m.zeros(6, 'u4'); x.dtype = 'f8'; r = x
x = m.zeros(5, 'u4'); x.dtype = 'f8'; r = x
x = m.zeros((2, 3)); x.strides = (8, 8); r = x
x = m.zeros(6); x.resize((2, 3)); r = x
x = m.zeros(6); x.resize((3, 3)); r = x
""",
    "numbers that the dtype of a part does not hold": """
u8.real = -2; r = u8
u8.real = 300; r = u8
u8.real = [300]; r = u8
u8.real = m.int64(300); r = u8
u8.real = 1.5; r = u8
f4.real = 3j; r = f4
f4.real = [1j]; r = f4
c16.real = 3j; r = c16
c16.imag = 3j; r = c16
c16.imag = 2**70; r = c16
c16.imag = 'a'; r = c16
c16.imag = None; r = c16
""",
    "numbers that a dtype does not hold where elements are chosen or written": """
r = m.where(mask, u8, 300)
r = m.where(mask, 300, u8)
r = m.where(mask, u8, -1)
r = m.where(mask, u8, 255)
r = m.where(mask, u8[0], -1)
r = m.where(mask, i4, 2**40)
r = m.where(mask, i4, 2**70)
r = m.where(mask, 300, -1)
r = m.where(mask, u8, 3.5)
r = m.select([mask], [u8], 300)
r = m.select([mask], [u8], -1)
m.copyto(u8, 300); r = u8
m.copyto(u8, -1); r = u8
m.copyto(u8, 2**70); r = u8
m.copyto(u8, 300, where=mask); r = u8
r = m.full(3, 300, 'u1')
r = m.full_like(u8, 300)
r = m.clip(u8, 0, 300)
r = m.clip(u8, -1, 2)
r = u8.clip(-5, -3)
r = u8.clip(300)
r = u8.clip(1, 2)
u8.fill(300); r = u8
""",
    "sorts": """
r = m.sort(f8, stable=True)
r = m.sort(f8, kind='stable')
r = m.argsort(f8, stable=False)
r = m.sort(f8, order='a')
r = m.sort(f8, 5)
""",
    "diagonals and quarters": """
r = m.rot90(one, 1.0)
r = m.rot90(one, 'a')
r = m.rot90(one, -1)
r = m.tri(2, 2, 1.5)
r = m.tri(2.0)
r = m.tril(one, 1.5)
r = m.triu(one, 1.5)
r = m.triu(one, m.int8(1))
r = m.tril_indices(2, 1.5)[0]
r = m.triu_indices(2, 1.5)[0]
r = m.tril_indices_from(one, 1.5)[1]
r = m.eye(3, k=1.5)
""",
    "names that come and go": """
r = m.fix(f4)
r = m.fix(f4, out=f4)
r = m.fix(-2.5)
r = m.fix(2)
r = m.typename('f')
r = m.row_stack([f4, f4])
r = m.in1d(u8, [1])
r = m.trapz(f4)
r = m.cross(f4[:2], f4[:2])
""",
    "arrays that stand for one number": """
r = float(m.ones(1))
r = int(m.ones((1, 1)))
r = complex(m.ones(1))
r = float(m.ones(()))
r = float(m.ones(2))
r = bool(m.zeros(0))
r = bool(m.zeros((0, 3)))
r = bool(m.ones(1))
""",
    "indices of flat": """
r = f4.flat[[0.5]]
r = f4.flat[[1.0, 2.0]]
r = f4.flat[1.0]
r = f4.flat[1j]
r = f4.flat[True]
r = f4.flat[False]
r = f4.flat[[True]]
r = f4.flat[[1]]
""",
    "halves after zeros": """
r = m.nextafter(f2, -f2)
r = m.nextafter(-f2, f2)
r = m.nextafter(f2, f2 + 1)
r = m.nextafter(f2 + m.nan, f2)
r = m.nextafter(f4, -f4)
r = m.spacing(f2)
""",
}


def _outcome(m: ModuleType, line: str) -> tuple[Any, list[tuple[str, str, str]]]:
    """The bytes of `r` or the error's class, and of each warning what, how and where."""
    names: dict[str, Any] = {"m": m}
    exec(SETUP, names)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            exec(compile(line, "the user's line", "exec"), names)
            host = np.asarray(names["r"])
            found: Any = (host.dtype, host.shape, host.tobytes())
        except Exception as error:
            found = next(kind.__name__ for kind in type(error).__mro__
                         if kind.__module__ != "clfuse.errors")
    return found, [(item.category.__name__, str(item.message), item.filename) for item in seen]


@pytest.mark.parametrize("host_us", [50, 0])
@pytest.mark.parametrize("topic", LINES)
def test_values_errors_and_warnings_are_those_of_any_release(
    topic: str, host_us: int, xp: ModuleType, setting: Any
) -> None:
    if xp is not np:
        setting(host_us=host_us, fallback="allow")
    wrong = []
    for line in LINES[topic].strip().split("\n"):
        expected, actual = _outcome(np, line), _outcome(xp, line)
        if actual != expected:
            wrong.append(f"{line}: {actual}; NumPy: {expected}")
    assert not wrong, "\n".join(wrong)


def _descending(row: np.ndarray) -> np.ndarray:
    """The indices that sort a row: largest first, NaN last, equal ones in their order."""
    def key(place: int) -> tuple[bool, float, float]:
        number = complex(row[place])
        is_nan = number != number
        return is_nan, 0.0 if is_nan else -number.real, 0.0 if is_nan else -number.imag

    return np.array(sorted(range(row.size), key=key))


@pytest.mark.clfuse_only
@pytest.mark.parametrize("dtype", ["?", "u1", "i8", "u4", "f2", "f4", "f8", "c8", "c16"])
def test_descending_sorts_have_nan_last_in_every_release(
    dtype: str, xp: ModuleType
) -> None:
    values = np.array([[3, 1, 0], [0, 2, 9], [-2, 1, 1], [7, 0, 7], [3, 3, 4]])
    values = values.astype("i8").astype(dtype)
    if values.dtype.kind in "fc":
        values[1, 0] = np.nan
    for axis, given in ((0, values), (1, values), (-1, values[::-1, 1:]), (0, values[:, 0])):
        order = np.apply_along_axis(_descending, axis, given)
        expected = np.take_along_axis(given, order, axis)
        a = xp.asarray(given)
        for options in ({}, {"stable": True}):
            found = xp.sort(a, axis, descending=True, **options)
            np.testing.assert_array_equal(np.asarray(found), expected)
        np.testing.assert_array_equal(
            np.asarray(xp.argsort(a, axis, stable=True, descending=True)), order)
        np.testing.assert_array_equal(np.asarray(a.argsort(axis, descending=True)), order)
        assert np.asarray(xp.sort(a, axis, descending=False)).tobytes() == np.asarray(
            xp.sort(a, axis)).tobytes()
        a.sort(axis, descending=True)
        np.testing.assert_array_equal(np.asarray(a), expected)
        if numpy_releases.SORTS_DESCENDING:
            np.testing.assert_array_equal(np.sort(given, axis, descending=True), expected)
    flat = xp.sort(xp.asarray(values), None, descending=True)
    np.testing.assert_array_equal(np.asarray(flat), values.reshape(-1)[
        _descending(values.reshape(-1))])


@pytest.mark.clfuse_only
def test_descending_in_place_is_refused_and_shown(xp: ModuleType) -> None:
    a = xp.arange(6.0).reshape(2, 3)
    view = a[:, ::2]
    view.sort(descending=True)
    assert np.asarray(a).tolist() == [[2.0, 1.0, 0.0], [5.0, 4.0, 3.0]]
    a.flags.writeable = False
    with pytest.raises(ValueError, match="sort array is read-only"):
        a.sort(descending=True)
    with pytest.raises(np.exceptions.AxisError):
        xp.sort(a, 2, descending=True)
    with pytest.raises(np.exceptions.AxisError):
        xp.arange(3.0).sort(2, descending=True)


@pytest.mark.clfuse_only
@pytest.mark.skipif(not numpy_releases.SORTS_DESCENDING, reason="NumPy 2.5 takes descending=")
def test_what_numpy_refuses_beside_descending_is_refused(xp: ModuleType) -> None:
    for options in ({"kind": "stable", "descending": False},
                    {"kind": "heapsort", "descending": True}, {"order": "a", "descending": True}):
        for function in ("sort", "argsort"):
            for m in (np, xp):
                with pytest.raises(ValueError, match=r"kind|fields"):
                    getattr(m, function)(m.arange(3.0), **options)


@pytest.mark.clfuse_only
def test_as_strided_checks_bounds_also_where_it_is_asked_to(xp: ModuleType) -> None:
    a = xp.arange(3.0)
    as_strided = xp.lib.stride_tricks.as_strided
    if not numpy_releases.CHECKS_STRIDES:
        with pytest.raises(TypeError, match="check_bounds"):
            as_strided(a, (2,), (8,), check_bounds=True)
        return
    for options in ({}, {"check_bounds": None}, {"check_bounds": True}, {"check_bounds": False}):
        assert np.asarray(as_strided(a, (2,), (16,), **options)).tolist() == [0.0, 2.0]
        assert np.asarray(as_strided(a[::-1], (3,), (-8,), **options)).tolist() == [2.0, 1.0, 0.0]
        with pytest.raises(ValueError, match="memory"):
            as_strided(a, (4,), (8,), **options)


@pytest.mark.clfuse_only
def test_numpys_own_functions_warn_as_without_clfuse() -> None:
    """clfuse takes the place of `warnings` in NumPy's modules: all that they give is passed on."""
    program = """
import sys, warnings
if sys.argv[1] == "with": import clfuse
import numpy as np
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    for line in ("np.tri(2, 2, 1.5)", "np.tril(np.ones((2, 2)), 1.5)", "np.fix(1.5)",
                 "np.triu_indices(2, 1.5)", "np.mean([])", "np.rot90(np.ones((2, 2)), 1.0)",
                 "np.nanmean([np.nan])", "np.typename('f')"):
        try:
            eval(compile(line, "user", "eval"))
        except Exception as error:
            print(line, type(error).__name__)
print([(item.category.__name__, str(item.message), item.filename) for item in seen])
"""
    texts = [subprocess.run([sys.executable, "-c", program, word], capture_output=True, text=True,
                            check=True).stdout
             for word in ("with", "without")]
    assert texts[0] == texts[1]


@pytest.mark.clfuse_only
def test_names_of_numpys_are_ours_and_no_others() -> None:
    """What the installed release has, or has no more, is what `clfuse` has, and has no more."""
    import clfuse

    gone = [name for name in ("in1d", "trapz", "row_stack", "cumulative_sum",
                              "unstack", "matvec", "vecmat", "astype", "fix", "typename")
            if hasattr(np, name) != hasattr(clfuse, name)]
    missing = [name for name in np.__all__ if not hasattr(clfuse, name)]
    assert (gone, missing) == ([], [])
