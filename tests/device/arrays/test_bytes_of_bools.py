"""Bytes written through a view of a bool array stay what they are; the array sees truth."""

from __future__ import annotations

from contextlib import nullcontext
from types import ModuleType
from typing import Any

import numpy as np
import pytest

SIZES = (6, 100_002)  # done at the call, and recorded

PROGRAMS = {
    "all of it": "v[:] = 2",
    "one element": "v[1] = 7",
    "in place": "v += 3",
    "as signed integers": "x.view('i1')[2:] = -1",
    "as floats": "x[:N // 8 * 8 or 4].view('f4' if N < 8 else 'f8')[:] = 0.5",
    "by indices": "v[[0, 2]] = 5",
    "by a mask": "v[v > 0] = 9",
    "an output": "m.add(v, 40, out=v)",
    "at places": "m.add.at(v, [1, 1], 7)",
    "sorted": "v[::2] = 9; v.sort()",
    "a part of the array": "x[1:4].view('u1')[:] = 4",
    "rows": "x.reshape(2, -1).view('u1')[1] = 8",
    "columns": "x.reshape(2, -1).T.view('u1')[1] = 8",
    "and then the array": "v[:] = 6; x[1] = True; x[2] = False",
    "and then a mask of it": "v[:] = 6; x &= m.arange(N) % 2 == 0",
    "and then all of the array": "v[:] = 6; x[:] = m.arange(N) % 3 == 0",
    "and then another dtype": "v[:] = 6; x.view('i1')[0] = -6",
    "copied": "m.copyto(v, 3, where=v == 0)",
}


def outcome(m: ModuleType, size: int, text: str) -> list[Any]:
    x = m.arange(size) % 2 == 1
    names = {"m": m, "x": x, "v": x.view(m.uint8), "N": size}
    y = x[::-1]
    exec(text, names)
    seen = (x, names["v"], x.view("i1"), y, ~x, x | y, m.where(x, 3, 4), m.flatnonzero(x), x.any(),
            x.astype("f4") > 0)
    return [np.asarray(value).tolist() for value in seen]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("text", PROGRAMS.values(), ids=list(PROGRAMS))
def test_bytes_written_through_a_view_of_bools_stay(text: str, size: int, xp: ModuleType) -> None:
    assert outcome(xp, size, text) == outcome(np, size, text)


@pytest.mark.clfuse_only
@pytest.mark.parametrize("host_us", [0, 1, 1_000_000])
def test_whoever_computes_keeps_the_bytes(host_us: int, xp: ModuleType) -> None:
    text = "; ".join(PROGRAMS[name] for name in ("in place", "by indices", "and then the array"))
    with xp.config.override(host_us=host_us):
        assert outcome(xp, 6, text) == outcome(np, 6, text)


@pytest.mark.filterwarnings("ignore:Setting the shape:DeprecationWarning")  # NumPy 2.5
def test_an_array_of_bools_still_owns_its_bytes(xp: ModuleType) -> None:
    x = xp.zeros((2, 3), bool)
    x.view(xp.uint8)[1] = 2
    assert (x.dtype, x.strides, x.base) == (bool, (3, 1), None)
    assert all((x.flags.owndata, x.flags.c_contiguous, x.flags.writeable))
    x.shape = (3, 2)
    assert np.asarray(x).tolist() == [[False, False], [False, True], [True, True]]


COPIES = {
    "copy": lambda m, x: x.copy(),
    "np.copy": lambda m, x: m.copy(x),
    "array": lambda m, x: m.array(x),
    "astype": lambda m, x: x.astype(bool),
    "flatten": lambda m, x: x.flatten(),
    "part": lambda m, x: x[1:].copy(),
    "backwards": lambda m, x: x[::-1].copy(),
    "transposed": lambda m, x: x.reshape(2, -1).T.copy("K"),
}


@pytest.mark.parametrize("host_us", [0, 50])
@pytest.mark.parametrize("size", [4, 40_000])
@pytest.mark.parametrize("name", COPIES)
def test_copies_of_bools_have_their_bytes(
    name: str, size: int, host_us: int, xp: ModuleType
) -> None:
    def bytes_of(m: ModuleType) -> list[int]:
        x = m.zeros(size, bool)
        x.view("u1")[1] = 5
        copied = COPIES[name](m, x)
        assert copied.base is None or name == "transposed"
        assert copied.sum() == 1
        assert copied.tolist() == np.array(copied, copy=True).tolist()
        return np.asarray(copied).reshape(-1).view("u1").tolist()

    with xp.config.override(host_us=host_us) if xp is not np else nullcontext():
        assert bytes_of(xp) == bytes_of(np)
