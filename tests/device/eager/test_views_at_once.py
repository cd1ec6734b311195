"""Views of small arrays on the host that functions give at the call: what is seen of them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.support.marks import compiled

pytestmark = pytest.mark.clfuse_only


@pytest.fixture(autouse=True)
def small(xp: ModuleType) -> Iterator[None]:
    with xp.config.override(host_us=50):
        yield


VIEWS = (
    "c.real", "c.imag", "c[1:].real", "c[::-1].imag", "np.real(c)", "np.imag(c.reshape(2, 6))",
    "m.diagonal()", "m.diagonal(1)", "m.diagonal(-2)", "m.diagonal(9)", "m.T.diagonal(1, 1, 0)",
    "m[1:].diagonal()", "np.diagonal(m, 1)", "np.diagonal(t, 0, 2, 1)", "np.diag(m)",
    "np.diag(m, -1)", "np.diag(m.T, 1)", "np.linalg.diagonal(t)", "np.linalg.diagonal(m)",
)  # fmt: skip
"""Of complex numbers `c`, a matrix `m` and an array of three axes `t`."""

SEVERAL = (
    "np.split(m, 2)", "np.split(c, 3)", "np.array_split(c, 5)", "np.array_split(m, 2, 1)",
    "np.hsplit(m, 3)", "np.hsplit(c, 2)", "np.vsplit(m, 2)", "np.dsplit(t, 2)",
    "np.split(m[:, 2:], 2, 1)", "np.ix_(i, k)", "np.ix_(i, k, i)", "np.ix_(i[1:], i[::-1])",
    *(["np.unstack(m)", "np.unstack(t)"] if hasattr(np, "unstack") else []),
)  # fmt: skip

WRONG = (
    "np.split(m, 3)", "np.array_split(m, 0)", "np.split(m, 2, 5)", "np.array_split(m, 2, -3)",
    "np.vsplit(c, 2)",
    "np.dsplit(m, 2)", "m.diagonal(0, 0, 0)", "np.diagonal(c)", "np.diagonal(m, 0, 0, 7)",
    "np.diag(t)", "np.linalg.diagonal(c)", "np.ix_(m)",
)  # fmt: skip


def space(module: Any) -> dict[str, Any]:
    made = {
        "c": np.arange(12) * (1 + 2j), "m": np.arange(24.0).reshape(4, 6),
        "t": np.arange(24, dtype="f4").reshape(2, 3, 4), "i": np.array([3, 0, 2]),
        "k": np.arange(4, dtype="i4"),
    }  # fmt: skip
    return {"np": module, **{name: module.array(value) for name, value in made.items()}}


def description(view: Any, names: dict[str, Any]) -> Any:
    owners = [name for name in "cmtik" if view.base is names[name]]
    flags = view.flags.writeable, view.flags.c_contiguous, view.flags.f_contiguous
    return owners, str(view.dtype), view.shape, view.strides, flags, np.asarray(view).tolist()


def is_at_once(view: Any, names: dict[str, Any]) -> bool:
    """Whether it holds its owner, and nothing that was recorded."""
    return any(view._owner is names[name] for name in "cmtik")


@compiled
@pytest.mark.parametrize("call", VIEWS)
def test_a_view_is_numpys_and_made_at_the_call(xp: ModuleType, call: str) -> None:
    ours, theirs = space(xp), space(np)
    view, expected = eval(call, ours), eval(call, theirs)
    assert is_at_once(view, ours)
    assert description(view, ours) == description(expected, theirs)
    inner, expected_inner = view[..., 1:], expected[..., 1:]
    for names, part in ((ours, inner), (theirs, expected_inner)):
        for name in "cmt":
            names[name] += 3
        if part.flags.writeable:
            part[...] = 7
    assert description(view, ours) == description(expected, theirs)
    assert description(inner, ours) == description(expected_inner, theirs)
    for name in "cmt":
        assert ours[name].tolist() == theirs[name].tolist()
    assert (view + 1).tolist() == (expected + 1).tolist()


@compiled
@pytest.mark.parametrize("call", [call for call in VIEWS if "diag" in call])
def test_a_diagonal_is_read_only(xp: ModuleType, call: str) -> None:
    for names in (space(xp), space(np)):
        view = eval(call, names)
        for part in (view, view[..., :], view.T):
            with pytest.raises(ValueError, match="read-only"):
                part[...] = 1
            with pytest.raises(ValueError, match="read-only"):
                part += 1
            with pytest.raises(ValueError, match="read-only"):
                part.fill(1)


@compiled
@pytest.mark.parametrize("call", SEVERAL)
def test_views_are_numpys_and_made_at_the_call(xp: ModuleType, call: str) -> None:
    ours, theirs = space(xp), space(np)
    views, expected = eval(call, ours), eval(call, theirs)
    assert type(views) is type(expected)
    assert all(is_at_once(view, ours) for view in views)
    for names, parts in ((ours, views), (theirs, expected)):
        for number, part in enumerate(parts):
            part[...] = number
        names["m"] += 1
    assert [description(view, ours) for view in views] == [
        description(view, theirs) for view in expected
    ]
    for name in "cmtik":
        assert ours[name].tolist() == theirs[name].tolist()


@pytest.mark.parametrize("call", WRONG)
def test_errors_are_numpys(xp: ModuleType, call: str) -> None:
    with pytest.raises(Exception) as theirs:  # noqa: PT011 (NumPy says which)
        eval(call, space(np))
    with pytest.raises(type(theirs.value)) as ours:
        eval(call, space(xp))
    assert str(ours.value) == str(theirs.value)


@pytest.mark.filterwarnings("ignore:Setting the shape:DeprecationWarning")  # NumPy 2.5
def test_views_of_what_is_recorded_or_read_only(xp: ModuleType) -> None:
    for module in (xp, np):
        c = module.array(np.arange(4) * 1j)
        c.flags.writeable = False
        assert not c.imag.flags.writeable
        assert c.imag.tolist() == [0, 1, 2, 3]
        real = module.array([1.0, 2.0])
        assert real.real is real
        zeros = real.imag
        assert zeros.tolist() == [0, 0]
        assert not zeros.flags.writeable
        part = module.array(np.arange(6) * 1j).imag
        part.shape = (2, 3)
        part[1] = 5
        assert part.base.tolist() == [0, 1j, 2j, 5j, 5j, 5j]


def test_arrays_in_fortran_order_are_their_own(xp: ModuleType) -> None:
    for module in (xp, np):
        m = module.array(np.arange(6.0).reshape(2, 3))
        for made in (module.asfortranarray(m), m.T + 0, m.copy("F")):
            assert made.base is None
            expected = np.array(made.tolist(), order="F")
            assert made.strides == expected.strides
            row = made[0]
            assert row.base is made
            row[1] = 50
            made[1] += 1
            expected[0, 1] = 50
            expected[1] += 1
            assert made.tolist() == expected.tolist()
        assert m.tolist() == [[0, 1, 2], [3, 4, 5]]


@compiled
@pytest.mark.parametrize("dtype", ["bool", "i1", "u8", "f2", "f4", "f8", "c16"])
@pytest.mark.parametrize(
    "call",
    [
        "np.copyto(w, 1)", "np.copyto(w, b)", "np.copyto(w, w[::-1])", "np.putmask(w, b, 1)",
        "np.put(w, [1, 2], 0)", "np.copyto(w, i, casting='unsafe')", "np.copyto(w, f)",
        "np.copyto(w, f, casting='unsafe')", "np.copyto(w, 70000)", "w.fill(1)", "w.fill(1.5)",
        "np.put_along_axis(w, i, 1, 0)", "np.put_along_axis(w, i + 9, 1, 0)",
    ],
)  # fmt: skip
def test_writes_that_calculate_nothing_are_numpys(xp: ModuleType, dtype: str, call: str) -> None:
    seen = []
    for module in (xp, np):
        names = {
            "np": module, "w": module.array(np.arange(5).astype(dtype)),
            "b": module.array(np.arange(5) % 2 == 0), "i": module.array(np.array([4, 0, 1, 1, 3])),
            "f": module.array(np.array([np.nan, 1, 1e30, -1, 2.5])),
        }  # fmt: skip
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            try:
                eval(call, names)
                error = None
            except Exception as raised:
                error = type(raised), str(raised)
            values = repr(names["w"].tolist())
        seen.append((error, values, sorted({str(each.message) for each in warned})))
    assert seen[0] == seen[1]
