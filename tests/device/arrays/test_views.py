"""Views show what is written through any other name of the same elements, as NumPy's do.

Each operation that NumPy defines as a view is made, written through, and looked at from the other
side; each that NumPy defines as a copy is shown to be one.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.support.agreement import Batch, assert_bitwise
from tests.support.hostile import DTYPES, ordinary
from tests.support.rounds import rounds

Make = Callable[[Any, Any], Any]

# (m, x) -> view or copy of x, which has shape (4, 6)
OPERATIONS: dict[str, Make] = {
    "row": lambda m, x: x[1],
    "negative row": lambda m, x: x[-1],
    "column": lambda m, x: x[:, 2],
    "element with ellipsis": lambda m, x: x[1, 2, ...],
    "inner part": lambda m, x: x[1:-1, 2:-1],
    "every second": lambda m, x: x[::2, 1::3],
    "backwards": lambda m, x: x[::-1],
    "backwards twice": lambda m, x: x[::-2, ::-1],
    "past the end": lambda m, x: x[2:100, -100:3],
    "newaxis": lambda m, x: x[None, :, None, 3],
    "ellipsis": lambda m, x: x[..., 0],
    "empty": lambda m, x: x[2:2],
    "everything": lambda m, x: x[...],
    "empty key": lambda m, x: x[()],
    "view of a view": lambda m, x: x[1:][::2][:, ::-1][..., 1:],
    "T": lambda m, x: x.T,
    "transpose": lambda m, x: m.transpose(x),
    "transpose(axes)": lambda m, x: x.reshape(2, 2, 6).transpose(2, 0, 1),
    "swapaxes": lambda m, x: m.swapaxes(x, 0, -1),
    "moveaxis": lambda m, x: m.moveaxis(x.reshape(2, 2, 2, 3), (0, 1), (-1, 0)),
    "reshape": lambda m, x: x.reshape(2, 12),
    "reshape(-1)": lambda m, x: x.reshape(-1),
    "reshape of columns": lambda m, x: x.T.reshape(24),
    "reshape of every second row": lambda m, x: x[::2].reshape(2, 2, 3),
    "reshape of every second column": lambda m, x: x[:, ::2].reshape(12),
    "reshape of backwards": lambda m, x: x[::-1].reshape(4, 2, 3),
    "reshape in Fortran order": lambda m, x: m.reshape(x, (6, 4), order="F"),
    "ravel": lambda m, x: x.ravel(),
    "ravel of the transpose": lambda m, x: x.T.ravel(),
    "ravel of a row": lambda m, x: x[1].ravel(),
    "flatten": lambda m, x: x.flatten(),
    "expand_dims": lambda m, x: m.expand_dims(x, (0, 2)),
    "squeeze": lambda m, x: m.squeeze(x[None, :, None]),
    "flip": lambda m, x: m.flip(x),
    "flip(axis)": lambda m, x: m.flip(x, axis=1),
    "fliplr": lambda m, x: m.fliplr(x),
    "flipud": lambda m, x: m.flipud(x),
    "rot90": lambda m, x: m.rot90(x),
    "roll": lambda m, x: m.roll(x, 2, axis=1),
    "roll flat": lambda m, x: m.roll(x, -3),
    "repeat": lambda m, x: m.repeat(x, 2, axis=0),
    "tile": lambda m, x: m.tile(x, (2, 1)),
    "copy": lambda m, x: x.copy(),
    "array": lambda m, x: m.array(x),
    "asarray": lambda m, x: m.asarray(x),
    "array without copy": lambda m, x: m.array(x, copy=None),
    "astype": lambda m, x: x.astype(x.dtype),
    "astype without copy": lambda m, x: x.astype(x.dtype, copy=False),
    "real": lambda m, x: x.real,
    "np.real": lambda m, x: m.real(x),
    "atleast_3d": lambda m, x: m.atleast_3d(x),
    "hsplit": lambda m, x: m.split(x, 2, axis=1)[1],
    "concatenate": lambda m, x: m.concatenate([x, x]),
    "stack": lambda m, x: m.stack([x, x]),
    "pad": lambda m, x: m.pad(x, 1),
    "where": lambda m, x: m.where(True, x, x),
    "positive": lambda m, x: +x,
    "fancy rows": lambda m, x: x[[0, 2]],
    "boolean rows": lambda m, x: x[np.array([True, False, True, False])],
    "take": lambda m, x: m.take(x, 1, axis=0),
    "mT": lambda m, x: x.mT,
    "unstack": lambda m, x: list(x)[2],
}
READ_ONLY: dict[str, Make] = {
    "broadcast_to": lambda m, x: m.broadcast_to(x, (3, 4, 6)),
    "broadcast_to of a row": lambda m, x: m.broadcast_to(x[0], (4, 6)),
    "diagonal": lambda m, x: m.diagonal(x),
    "diagonal(offset)": lambda m, x: x.diagonal(1),
    "slice of broadcast_to": lambda m, x: m.broadcast_to(x, (3, 4, 6))[0],
    "imag of reals": lambda m, x: x.imag,
}


def start(m: ModuleType, dtype: str = "float64") -> Any:
    return m.array(ordinary(1, (4, 6), dtype))


@pytest.mark.parametrize("name", [*OPERATIONS, *READ_ONLY])
def test_a_view_has_the_values_of_its_elements(name: str, xp: ModuleType) -> None:
    make = {**OPERATIONS, **READ_ONLY}[name]
    batch = Batch(xp)
    for dtype in ("float64", "bool", "int16", "complex64"):
        batch.same(f"{name} of {dtype}", lambda m, d=dtype: make(m, start(m, d)))
        batch.same(f"{name} of an expression", lambda m, d=dtype: make(
            m, (start(m, d) + start(m, d))))
        batch.same(f"{name} in an expression", lambda m, d=dtype: make(m, start(m, d)) * 2)
    batch.check()


@pytest.mark.parametrize("name", OPERATIONS)
def test_writing_to_the_base_shows_in_views_and_not_in_copies(name: str, xp: ModuleType) -> None:
    def call(m: ModuleType) -> Any:
        x = start(m)
        view = OPERATIONS[name](m, x)
        x[...] = m.arange(24.0).reshape(4, 6)
        x[1] += 100
        return view, x

    batch = Batch(xp)
    batch.same(name, call)
    batch.check()


@pytest.mark.parametrize("name", OPERATIONS)
def test_writing_through_a_view_shows_in_its_base(name: str, xp: ModuleType) -> None:
    def call(m: ModuleType) -> Any:
        x = start(m)
        view = OPERATIONS[name](m, x)
        before = x + 0
        view[...] = -1
        view *= 3
        return x, view, before

    batch = Batch(xp)
    batch.same(name, call)
    batch.check()


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_view_outlives_the_name_of_its_base(name: str, xp: ModuleType) -> None:
    def call(m: ModuleType) -> Any:
        x = start(m)
        first, second = OPERATIONS[name](m, x), OPERATIONS[name](m, x)
        x[...] = 5
        del x
        first[...] += 1
        return first, second

    batch = Batch(xp)
    batch.same(name, call)
    batch.check()


@pytest.mark.parametrize("name", READ_ONLY)
def test_read_only_views_refuse_to_be_written(name: str, xp: ModuleType) -> None:
    def write(m: ModuleType) -> None:
        READ_ONLY[name](m, start(m))[...] = 1

    def in_place(m: ModuleType) -> None:
        view = READ_ONLY[name](m, start(m))
        view += 1

    def out(m: ModuleType) -> None:
        view = READ_ONLY[name](m, start(m))
        m.negative(view, out=view)

    def shown(m: ModuleType) -> Any:
        x = start(m)
        view = READ_ONLY[name](m, x)
        x[...] = 3
        return view, m.array(view.flags.writeable)

    batch = Batch(xp)
    for label, call in (("[...]=", write), ("+=", in_place), ("out=", out), ("shows", shown)):
        batch.same(f"{name} {label}", call)
    batch.check()


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_real_and_imaginary_parts_are_views(dtype: str, xp: ModuleType) -> None:
    def call(m: ModuleType) -> Any:
        z = start(m, dtype)
        real, imag = z.real, z[::2].imag
        real[1] = 7
        imag *= 2
        z.real[:, 0] = imag[0, 0]
        z[3] = 1 - 2j
        z.imag = 4
        return z, real, imag, real + z.imag

    batch = Batch(xp)
    batch.same(dtype, call)
    batch.check()


@pytest.mark.parametrize("dtype", DTYPES)
def test_overlapping_reads_and_writes_read_first(dtype: str,
                                                                       xp: ModuleType) -> None:
    def case(key_to: Any, key_from: Any) -> Callable[[Any], Any]:
        def call(m: ModuleType) -> Any:
            x = m.array(ordinary(2, (9, 9), dtype))
            x[key_to] = x[key_from]
            return x
        return call

    everything = slice(None)
    ahead, behind = slice(1, None), slice(None, -1)
    batch = Batch(xp)
    batch.same("ahead", case(ahead, behind))
    batch.same("behind", case(behind, ahead))
    batch.same("diagonal", case((ahead, ahead), (behind, behind)))
    batch.same("columns", case((everything, ahead), (everything, behind)))
    batch.same("reversed", case(everything, slice(None, None, -1)))
    batch.same("row everywhere", case(everything, 3))
    batch.same("column everywhere", case(everything, (everything, slice(4, 5))))

    def transposed(m: ModuleType) -> Any:
        x = m.array(ordinary(3, (9, 9), dtype))
        x[...] = x.T
        return x

    batch.same("transposed", transposed)
    if dtype != "bool":
        def prefix(m: ModuleType) -> Any:
            x = m.array(ordinary(4, (9, 9), dtype))
            x[1:] += x[:-1]
            x[:, ::-1] -= x
            return x

        batch.same("in place", prefix)
    batch.check()


def test_an_assignment_reads_what_the_operand_was_then(xp: ModuleType) -> None:
    def call(m: ModuleType) -> Any:
        a = m.array(ordinary(5, 50, "float32"))
        b = m.zeros(50, "float32")
        b[...] = a
        c = a * 2
        a[::2] = 9
        d = a + b
        a *= 0
        b[1:3] = a[1:3]
        del a
        return b, c, d

    batch = Batch(xp)
    batch.same("values", call)
    batch.check()


def test_swapping_through_views_needs_a_copy_as_under_numpy(xp: ModuleType) -> None:
    def naive(m: ModuleType) -> Any:
        x = m.arange(10)
        x[:5], x[5:] = x[5:], x[:5]
        return x

    def rows(m: ModuleType) -> Any:
        x = m.arange(12).reshape(3, 4)
        x[0], x[1] = x[1].copy(), x[0].copy()
        return x

    batch = Batch(xp)
    batch.same("naive", naive)
    batch.same("with copies", rows)
    batch.check()


def test_elements_taken_by_index_do_not_follow_later_writes(xp: ModuleType) -> None:
    def call(m: ModuleType) -> Any:
        x = m.arange(5.0)
        element = x[2]
        kept = element
        x[2] = 50
        element += 1
        row = m.arange(4).reshape(2, 2)[1]
        last = row[-1]
        row[-1] = 9
        return element, kept, x, last, row

    batch = Batch(xp)
    batch.same("values", call)
    batch.check()


def test_0d_views_follow_and_write(xp: ModuleType) -> None:
    def call(m: ModuleType) -> Any:
        x = m.arange(5.0)
        view = x[2, ...]
        x[2] = 50
        view += 1
        view[...] = view * 2
        scalar = m.array(3.0)
        alias = scalar
        alias += 1
        return x, view, scalar

    batch = Batch(xp)
    batch.same("values", call)
    batch.check()


def test_in_place_operators_write_through_every_alias(xp: ModuleType) -> None:
    def call(m: ModuleType) -> Any:
        x = m.array(ordinary(6, (5, 7), "int32"))
        alias, column, flat = x, x[:, 1], x.reshape(-1)
        x += 1
        column *= 10
        flat[::3] -= 5
        x //= 2
        x %= 7
        x <<= 1
        x |= 1
        x ^= 3
        x **= 2
        y = x.astype("float32")
        y /= 4
        return x, alias, column, flat, y

    batch = Batch(xp)
    batch.same("values", call)
    batch.check()


SETTINGS: dict[str, Callable[[Any, Any], None]] = {
    "number": lambda m, x: x.__setitem__(slice(None), 3),
    "row from list": lambda m, x: x.__setitem__(0, [1, 2, 3, 4, 5, 6]),
    "row from array": lambda m, x: x.__setitem__(1, m.arange(6)),
    "element": lambda m, x: x.__setitem__((2, -1), 7),
    "broadcast column": lambda m, x: x.__setitem__((slice(None), slice(1, 3)),
                                                   m.array([[1], [2], [3], [4]])),
    "leading size-1 axes": lambda m, x: x.__setitem__(2, m.arange(6).reshape(1, 1, 6)),
    "backwards": lambda m, x: x.__setitem__(slice(None, None, -1), m.arange(24).reshape(4, 6)),
    "newaxis": lambda m, x: x.__setitem__((None, 1), m.ones((1, 6))),
    "ellipsis": lambda m, x: x.__setitem__((..., 2), m.arange(4)),
    "0-d": lambda m, x: x.__setitem__(slice(1, 3), m.array(2)),
    "nothing": lambda m, x: x.__setitem__(slice(2, 2), 5),
    "numpy array": lambda m, x: x.__setitem__(slice(0, 2), np.ones((2, 6), "int8")),
    "numpy scalar": lambda m, x: x.__setitem__(0, np.float32(2.7)),
    "bool": lambda m, x: x.__setitem__(0, True),
    "boolean mask": lambda m, x: x.__setitem__(x > 2, 0),
    "fancy": lambda m, x: x.__setitem__([0, 2], 9),
    "itself": lambda m, x: x.__setitem__(slice(None), x),
    "float": lambda m, x: x.__setitem__(0, 2.5),
    "too many": lambda m, x: x.__setitem__(0, [1, 2]),
    "too large": lambda m, x: x.__setitem__(0, 2 ** 70),
    "complex": lambda m, x: x.__setitem__(0, 2j),
    "words": lambda m, x: x.__setitem__(0, "abc"),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_setitem_casts_and_broadcasts_as_under_numpy(name: str, xp: ModuleType) -> None:
    batch = Batch(xp)
    for dtype in DTYPES:
        def call(m: ModuleType, dtype: str = dtype) -> Any:
            x = start(m, dtype)
            SETTINGS[name](m, x)
            return x

        batch.same(f"{name} into {dtype}", call)
    batch.check()


def test_fill_and_copyto_write_in_place(xp: ModuleType) -> None:
    def call(m: ModuleType) -> Any:
        x = start(m)
        row = x[1]
        row.fill(8)
        m.copyto(x[2:], x[:2])
        m.copyto(x, 0, where=m.array(ordinary(7, (4, 6), "bool")))
        return x, row

    batch = Batch(xp)
    batch.same("values", call)
    batch.check()


def test_views_report_numpys_attributes(xp: ModuleType) -> None:
    for name, make in {**OPERATIONS, **READ_ONLY}.items():
        expected, actual = make(np, start(np)), make(xp, start(xp))
        for attribute in ("shape", "dtype", "ndim", "size", "nbytes", "itemsize"):
            assert getattr(actual, attribute) == getattr(expected, attribute), (name, attribute)
        assert len(actual) == len(expected) if expected.ndim else True
        assert actual.flags.writeable == expected.flags.writeable, name


# -- views that are NumPy's -----------------------------------------------------------------------


HOSTED: dict[str, Callable[[Any], Any]] = {
    "datetime64": lambda x: x.view("M8[s]"),
    "fields": lambda x: x.view([("low", "u4"), ("high", "i4")])["low"],
    "text": lambda x: x.view("S8"),
    "bytes": lambda x: x.view("V8"),
    "another byte order": lambda x: x.view(">i8"),
    "part": lambda x: x[1::2].view("M8[s]"),
    "records": lambda x: x.view(np.recarray),
    "not aligned": lambda x: x.view("u1")[1:-7].view("i8"),
}


@pytest.mark.parametrize("name", HOSTED)
def test_a_view_of_a_dtype_of_the_host_is_written_through(name: str, xp: ModuleType) -> None:
    def program(m: ModuleType) -> list[Any]:
        x = m.arange(6) * 3 + 1
        other = x[::-1]
        before = x * 2
        view = HOSTED[name](x)
        seen = [view.copy()]
        view[0] = view[-1]
        seen.append(m.array(x))
        after = x + other
        x[1:3] = 77
        other[0] = 5
        x += 1
        seen.append(view.copy())
        view[1] = view[0]
        return [np.asarray(item) for item in (*seen, before, after, x, other)]

    for ours, numpys in zip(program(xp), program(np), strict=True):
        assert ours.dtype == numpys.dtype
        assert ours.tobytes() == numpys.tobytes()


def test_a_view_on_the_host_of_a_read_only_array_is_read_only(xp: ModuleType) -> None:
    x = xp.arange(4) + 1
    x.flags.writeable = False
    view = x.view("M8[s]")
    with pytest.raises(ValueError, match="read-only"):
        view[0] = view[1]


@pytest.mark.clfuse_only
def test_an_array_is_the_devices_again_without_host_views(xp: ModuleType) -> None:
    x = xp.arange(1000.0) + 1
    view = x.view("M8[s]")
    assert xp.shares_memory(x, view)
    view[3] = view[4]
    part = view[3:5]
    del view
    part[1] = part[0]
    del part
    xp.evaluate(x * 2)
    before = np.asarray(x)
    assert before[3] == before[4] == 5
    x *= 2
    assert_bitwise(x, before * 2)
    assert type(x._storage).__name__ == "Storage"


@pytest.mark.parametrize("size", [91, 371, 8195])
def test_larger_elements_may_leave_bytes_at_the_end(xp: ModuleType, size: int) -> None:
    def program(m: ModuleType) -> Any:
        x = m.arange(size).astype("u1")
        count = (size - 15) // 4
        for offset, dtype in ((8, "f4"), (4, "i4"), (0, "u2")):
            part = x[offset : offset + 4 * count].view(dtype)
            part[:] = m.arange(part.size) % 100
            part[1] += 3
        return x

    assert_bitwise(program(xp), program(np))


@pytest.mark.parametrize("size", [91, 8195])
def test_complex_numbers_may_leave_bytes_at_the_end(xp: ModuleType, size: int) -> None:
    def program(m: ModuleType) -> Any:
        x = m.arange(size).astype("i4")
        part = x[: size // 4 * 4].view("c16")
        part[1:] *= 1j
        part.imag[0] = 2.5
        return x

    assert_bitwise(program(xp), program(np))


def an_index(random: np.random.Generator) -> Any:
    """Integers and slices of all signs, None and Ellipsis, more or fewer than there are axes."""

    def bound() -> Any:
        return None if random.random() < 0.4 else int(random.integers(-6, 7))

    def item() -> Any:
        kind = random.random()
        if kind < 0.25:
            return int(random.integers(-4, 4))
        if kind < 0.7:
            return slice(bound(), bound(), (None, 1, 2, -1, -2)[random.integers(5)])
        return None if kind < 0.86 else Ellipsis

    items = tuple([item() for _ in range(random.integers(0, 6))])
    return items[0] if len(items) == 1 else items


def test_indices_of_recorded_arrays_do_what_numpys_do(xp: ModuleType) -> None:
    random = np.random.default_rng(20)

    def outcome(m: ModuleType, shape: tuple[int, ...], index: Any) -> Any:
        given = np.arange(float(np.prod(shape))).reshape(shape)
        a, b = (m.asarray(m.asarray(given) + shift) for shift in (1, 2))
        try:
            part = a[index]
            twice = part * 2
            b[index] = twice
        except IndexError:
            return IndexError
        if not isinstance(part, m.ndarray):
            return np.asarray(part), np.asarray(b)
        part[...] = 7
        return np.asarray(twice), np.asarray(b), np.asarray(a)

    with xp.config.override(host_us=0, build_after_ms=10**9):  # NumPy calculates, what is recorded
        for _ in range(rounds(400)):
            shape = tuple(random.integers(0, 5, random.integers(0, 5)).tolist())
            index = an_index(random)
            expected, actual = outcome(np, shape, index), outcome(xp, shape, index)
            if expected is IndexError:
                assert actual is IndexError, (shape, index)
                continue
            for theirs, ours in zip(expected, actual, strict=True):
                np.testing.assert_array_equal(ours, theirs, err_msg=f"{shape} {index}", strict=True)


@pytest.mark.parametrize("strides", [(4, 4), (0, 0), (12, 4)])
def test_empty_views_by_strides_take_writes(xp: ModuleType, strides: tuple[int, int]) -> None:
    x = xp.zeros((0, 3), xp.float32)
    view = xp.lib.stride_tricks.as_strided(x, (0, 3), strides)
    assert view.flags.writeable
    view += 1
    xp.add.at(view, (xp.zeros(0, int),), 1)
    assert view.shape == (0, 3)
