"""Kernels over unequal ranges that are one give what each gives alone, wherever they begin."""

from __future__ import annotations

import random
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from clfuse.schedule.fuse import multi_domain
from tests.support.agreement import Batch
from tests.support.rounds import rounds

pytestmark = pytest.mark.clfuse_only


def statements(m: Any, arrays: list[Any], first: tuple[int, int], last: tuple[int, int]) -> Any:
    """Over all of it, and over a part of it that begins and ends there."""
    a, b, c = arrays
    part = tuple(
        slice(low, extent - high) for low, extent, high in zip(first, a.shape, last, strict=True)
    )
    c[:] = a * 2
    b[part] += a[part] * 0.5 + c[part]
    return m.asarray(b), m.asarray(c)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int16", "complex64"])
def test_parts_of_all_kinds_within_the_whole(xp: ModuleType, dtype: str) -> None:
    batch = Batch(xp)
    random = np.random.default_rng(6)
    parts = (((0, 1), (0, 1)), ((0, 0), (0, 3)), ((0, 2), (0, 0)), ((1, 1), (1, 1)))
    with xp.config.override(stream_bytes=0, debug=True):
        for shape in ((7, 200), (3, 67), (1, 300)):
            made = [random.integers(0, 9, shape).astype(dtype) for _ in range(3)]
            for first, last in parts:
                if first[0] + last[0] < shape[0]:
                    batch.same(
                        f"{shape} {first} {last}",
                        lambda m, g=made, f=first, s=last: statements(
                            m, [m.array(each) for each in g], f, s
                        ),
                    )
        batch.check()


@pytest.mark.parametrize("part", [slice(None, None, 2), slice(1, None), slice(None, -9000)])
def test_a_counted_part_beside_the_whole_mask(xp: ModuleType, part: slice) -> None:
    """Its pieces are those of its own range: the mask, which is wanted too, is longer."""
    rng = np.random.default_rng(5)
    given = rng.random(30_007)

    def run(m: Any) -> list[Any]:
        x, y = m.asarray(given), m.asarray(given.copy())
        if m is not np:
            m.evaluate(x, y)
        mask = x >= 0.9
        found = [m.count_nonzero(mask[part]), y[part][mask[part]], y[part][mask[part]] * 2]
        y[part][mask[part]] -= 0.5
        z = m.asarray(given) < 0.3
        found += [m.nonzero(z[part])[0], z, mask, y, mask.sum()]
        return found

    for found, wanted in zip(run(xp), run(np), strict=True):
        np.testing.assert_array_equal(np.asarray(found), np.asarray(wanted))


def test_a_step_over_neighbours_and_one_over_all_are_one_launch(xp: ModuleType) -> None:
    @xp.kernel
    def star(i, j, old, new):
        new[i, j] += old[i + 1, j] - old[i - 1, j] + old[i, j + 1] - old[i, j - 1]

    @xp.kernel
    def increment(i, j, a):
        a[i, j] += 1

    @xp.kernel
    def largest(i, j, a):
        return abs(a[i, j])

    values = np.random.default_rng(7).random((40, 130))
    expected = [values.copy(), np.zeros((40, 130))]
    star.python(((1, 39), (1, 129)), *expected)
    increment.python((40, 130), expected[0])
    old, new = xp.asarray(values), xp.zeros((40, 130))
    xp.evaluate(old, new)
    star(((1, 39), (1, 129)), old, new)
    increment((40, 130), old)
    plan = xp.explain(old, new)
    assert len(plan.kernels) == 1
    assert plan.nbytes < 4.1 * values.nbytes
    np.testing.assert_array_equal(old.get(), expected[0])
    np.testing.assert_array_equal(new.get(), expected[1])
    found = float(largest.reduce((40, 130), new, op="max"))
    np.testing.assert_allclose(found, abs(expected[1]).max())


@pytest.fixture
def any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let ranges be joined that are too small to be worth it."""
    monkeypatch.setattr(multi_domain, "LEAST_ROW", 2)
    monkeypatch.setattr(multi_domain, "LEAST_PART", 0.1)


def in_parts(m: Any, what: str, parts: list[Any], axis: int) -> Any:
    """An array of which the parts are written side by side along an axis, all of it or not."""
    axis = min(axis, parts[0].ndim - 1)
    if what == "joined":
        return m.concatenate(parts[:2], axis=axis)
    length = parts[0].shape[axis]
    shape = list(parts[0].shape)
    shape[axis] *= 3
    made = m.zeros(shape, parts[0].dtype)
    for number, part in enumerate(parts[:2]):
        start = number * length * (2 if what == "thirds" else 1)
        made[(slice(None),) * axis + (slice(start, start + length),)] = part
    return made


def read_on(m: Any, array: Any, fold: str) -> list[Any]:
    """What is computed of an array that was written in parts, and whether it is kept."""
    if fold == "sum":
        return [m.cumsum(array, axis=-1)]
    if fold == "max":
        return [m.cumsum(array, axis=-1), array]
    return [getattr(array, fold)(axis=0 if fold == "min" else None), array * 2]


def drawn(shape: tuple[int, ...], draw: random.Random) -> Callable[[Any, list[Any]], list[Any]]:
    """A program of some statements over boxes of three arrays, written, read and folded; some of
    the arrays are forgotten then."""
    whole = tuple(slice(0, extent) for extent in shape)

    def box() -> tuple[slice, ...]:
        if draw.random() < 0.25:
            return whole
        return tuple(
            slice(draw.choice([0, 0, 1, 2]), extent - draw.choice([0, 0, 1, 2, 3]))
            for extent in shape
        )

    def beside(part: tuple[slice, ...]) -> tuple[slice, ...]:
        moved = []
        for side, extent in zip(part, shape, strict=True):
            by = draw.choice([-1, 0, 0, 1])
            fits = side.start + by >= 0 and side.stop + by <= extent
            moved.append(slice(side.start + by, side.stop + by) if fits else side)
        return tuple(moved)

    statements = []
    for _ in range(draw.randint(3, 6)):
        part = box()
        sources = [
            (draw.randrange(3), part if draw.random() < 0.6 else beside(part)) for _ in range(2)
        ]
        way, fold = draw.randrange(4), draw.choice(["sum", "max", "min", "any"])
        what = draw.choice(
            ["write", "write", "add", "keep", "fold", "rows", "spread", "scan", "find", "columns",
             "down", "frame", "before", "turn", "joined", "halves", "thirds"]
        )
        statements.append((part, sources, way, draw.choice([2, 3, 5]), what, fold,
                           draw.randrange(3)))

    def program(m: Any, arrays: list[Any]) -> list[Any]:
        kept = []
        for part, sources, way, number, what, fold, target in statements:
            u, v = [arrays[place][view] for place, view in sources]
            made = [u * number + v, m.maximum(u, v) - number, u - v, abs(u) + number][way]
            if what == "write":
                arrays[target][part] = made
            elif what == "add":
                arrays[target][part] += made
            elif what == "keep":
                kept.append(made)
            elif what in ("scan", "down"):
                scan = m.minimum.accumulate if fold == "min" else m.cumsum
                kept.append(scan(made, axis=-1 if what == "scan" else 0) - number)
            elif what == "frame":
                framed = m.zeros(shape, made.dtype)
                framed[part] = made
                kept.append(m.cumsum(framed, axis=-1 if number == 2 else 0))
            elif what == "before":
                scanned = m.cumsum(made, axis=-1)
                kept.append(m.concatenate([scanned[..., :1] * 0, scanned[..., :-1]], axis=-1))
            elif what == "turn":
                turned = m.roll(made, number, axis=-1)
                kept.append(m.cumsum(turned, axis=-1) if fold == "sum" else turned.max(axis=0))
            elif what in ("joined", "halves", "thirds"):
                kept += read_on(m, in_parts(m, what, [made, u, v - number], number % 2), fold)
            elif what == "find":
                search = m.argmin if fold == "min" else m.argmax
                kept.append(search(made, axis=[None, -1, 0][number % 3]))
            elif what == "spread":
                arrays[target][part] = made + made.max()
            else:
                axis = {"fold": None, "rows": -1, "columns": 0}[what]
                kept.append(getattr(made, fold)(axis=axis))
        return [*arrays[:remembered], *kept]

    remembered = draw.randint(1, 3)
    return program


@pytest.mark.parametrize("shape", [(70,), (9, 40), (7, 8, 20)], ids=str)
@pytest.mark.usefixtures("any_size")
def test_random_statements_over_random_boxes(xp: ModuleType, shape: tuple[int, ...]) -> None:
    draw = random.Random(len(shape))
    made = [np.random.default_rng(place).integers(-9, 9, shape) for place in range(3)]
    with xp.config.override(debug=True, host_us=0):
        for _ in range(rounds(8)):
            program = drawn(shape, draw)
            for dtype in ("int32", "float64"):
                values = [each.astype(dtype) for each in made]
                expected = program(np, [each.copy() for each in values])
                found = program(xp, [xp.array(each) for each in values])
                xp.evaluate(*found)
                for one, other in zip(found, expected, strict=True):
                    np.testing.assert_array_equal(one, other)


def check_program(
    xp: ModuleType, program: Callable[..., list[Any]], values: list[np.ndarray]
) -> None:
    """What a program makes of arrays with these values has NumPy's values and dtypes."""
    expected = program(np, *[each.copy() for each in values])
    with xp.config.override(debug=True, host_us=0):
        found = program(xp, *[xp.array(each) for each in values])
        xp.evaluate(*found)
    rtol = 1e-2 if values[0].dtype == np.float16 else 1e-5
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=rtol)
        assert np.asarray(one).dtype == other.dtype


@pytest.mark.usefixtures("any_size")
@pytest.mark.parametrize("dtype", ["float32", "bool", "complex128", "float16"])
@pytest.mark.parametrize("fold", ["sum", "prod", "max", "all", "var", "argmax"])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_folds_of_all_kinds_over_parts_behind_a_write(
    xp: ModuleType, dtype: str, fold: str, axis: int | None
) -> None:
    def program(m: Any, a: Any, b: Any) -> list[Any]:
        part = slice(1, -1), slice(2, None)
        b[part] = a[part] ^ b[part] if dtype == "bool" else a[part] * b[part]
        return [
            b,
            *[getattr(each, fold)(axis=axis) for each in (b, a[part], b[2:, :-3])],
        ]

    draw = np.random.default_rng(4)
    values = [draw.integers(-1, 3, (11, 67)).astype(dtype) for _ in range(2)]
    with np.errstate(all="ignore"):
        check_program(xp, program, values)


@pytest.mark.usefixtures("any_size")
def test_nan_and_infinity_behind_a_write_to_a_part(xp: ModuleType) -> None:
    values = np.random.default_rng(9).standard_normal((12, 90))
    values[0, 3], values[5, 5], values[11, 89] = np.nan, np.inf, -np.inf
    with xp.config.override(debug=True, host_us=0):
        for fold in ("max", "min", "sum"):
            a, b = xp.array(values), xp.zeros(values.shape)
            xp.evaluate(a, b)
            b[1:-1, 1:-1] = a[1:-1, 1:-1] + 1
            found = [getattr(b, fold)(), getattr(a, fold)(), b]
            xp.evaluate(*found)
            c = np.zeros(values.shape)
            c[1:-1, 1:-1] = values[1:-1, 1:-1] + 1
            expected = [getattr(c, fold)(), getattr(values, fold)(), c]
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_array_equal(one, other)


def test_kernels_in_python_over_unequal_ranges_are_one_launch(xp: ModuleType) -> None:
    @xp.kernel
    def along(i, j, ez, hy):
        hy[i, j] += 0.5 * (ez[i, j + 1] - ez[i, j])

    @xp.kernel
    def down(i, j, ez, hx):
        hx[i, j] -= 0.5 * (ez[i + 1, j] - ez[i, j])

    @xp.kernel
    def squares(i, j, h):
        return h[i, j] * h[i, j]

    n, m = 30, 140
    draw = np.random.default_rng(5)
    values = [draw.random(shape) for shape in ((n, m), (n, m - 1), (n - 1, m))]
    expected = [each.copy() for each in values]
    along.python((n, m - 1), expected[0], expected[1])
    down.python((n - 1, m), expected[0], expected[2])
    ez, hy, hx = [xp.asarray(each) for each in values]
    xp.evaluate(ez, hy, hx)
    along((n, m - 1), ez, hy)
    down((n - 1, m), ez, hx)
    assert len(xp.explain(hy, hx).kernels) == 1
    total = squares.reduce((n, m - 1), hy)
    launches = [each for each in xp.explain(hy, hx, total).kernels if not each.follows]
    assert len(launches) == (1 if xp.get_device().traits.schedule == "cpu" else 2)
    np.testing.assert_array_equal(hy.get(), expected[1])
    np.testing.assert_array_equal(hx.get(), expected[2])
    np.testing.assert_allclose(float(total), (expected[1] ** 2).sum())


@pytest.mark.usefixtures("any_size")
@pytest.mark.parametrize("dtype", ["float32", "bool", "complex128", "float16", "uint8"])
@pytest.mark.parametrize("name", ["add", "multiply", "maximum", "logical_xor"])
@pytest.mark.parametrize("axis", [0, 1])
def test_scans_of_all_kinds_over_a_part_behind_a_write(
    xp: ModuleType, dtype: str, name: str, axis: int
) -> None:
    def program(m: Any, a: Any, b: Any) -> list[Any]:
        scan = getattr(m, name).accumulate
        part = slice(1, -1), slice(2, -3)
        b[part] = a[part] ^ b[part] if dtype == "bool" else a[part] * b[part]
        return [b, scan(b, axis=axis), scan(a[part], axis=axis),
                a & b if dtype == "bool" else a + b]

    draw = np.random.default_rng(4)
    values = [draw.integers(-1, 3, (11, 67)).astype(dtype) for _ in range(2)]
    if dtype in ("float32", "float16"):
        values[0][3, 40], values[0][0, 1], values[1][10, 66] = np.nan, np.inf, -0.0
    with np.errstate(all="ignore"):
        check_program(xp, program, values)


@pytest.mark.parametrize("settings", [{}, {"stream_bytes": 0}], ids=["cached", "streamed"])
@pytest.mark.parametrize("count", [300, 70_001])
def test_scans_of_kernels_over_unequal_ranges_are_one_launch(
    xp: ModuleType, count: int, settings: dict[str, int]
) -> None:
    """One and its pieces, where a row is scanned in pieces."""

    @xp.kernel
    def between(i, x, y):
        y[i] = x[i - 1] + x[i + 1]

    @xp.kernel
    def double(i, x, z):
        z[i] = 2 * x[i]

    @xp.kernel
    def add(i, s, z):
        z[i] = s[i] + z[i]

    @xp.kernel
    def element(i, x):
        return x[i]

    def scans(*arrays: Any) -> int:
        kernels = xp.explain(*arrays).kernels
        assert kernels[-1].kind == "scan"
        return sum([each.kind != "reduce" and not each.name.endswith("_words") for each in kernels])

    draw = np.random.default_rng(8)
    values = [draw.integers(-99, 99, count).astype(float) for _ in range(2)]
    values[0][count // 2] = -0.0
    with xp.config.override(debug=True, host_us=0, **settings):
        x, y = [xp.asarray(each) for each in values]
        xp.evaluate(x, y)
        between(((1, count - 1),), x, y)
        scanned = element.scan(count, y)
        assert scans(scanned, y) == 1
        expected = values[1].copy()
        expected[1:-1] = values[0][:-2] + values[0][2:]
        np.testing.assert_array_equal(scanned, expected.cumsum())
        np.testing.assert_array_equal(y, expected)

        x, z = [xp.asarray(each) for each in values]
        xp.evaluate(x, z)
        double(count, x, z)
        scanned = element.scan(((2, count - 3),), z)
        assert scans(scanned, z) == 1
        np.testing.assert_array_equal(scanned, (2 * values[0][2:-3]).cumsum())
        np.testing.assert_array_equal(z, 2 * values[0])

        x, z = [xp.asarray(each) for each in values]
        xp.evaluate(x, z)
        scanned = element.scan(count, x)
        add(((3, count - 5),), scanned, z)
        assert scans(scanned, z) == 1
        expected = values[1].copy()
        expected[3:-5] += values[0].cumsum()[3:-5]
        np.testing.assert_array_equal(z, expected)
        np.testing.assert_array_equal(scanned, values[0].cumsum())


def launched(xp: ModuleType, *arrays: Any) -> int:
    """Kernels that compute these, but for those that fold the pieces of another, or that clear the
    words by which the groups of a scan in one pass see each other."""
    names = [each.name for each in xp.explain(*arrays).kernels]
    return sum([not name.endswith(("_pieces", "_words")) for name in names])


def test_folds_and_searches_over_unequal_ranges_are_one_launch(xp: ModuleType) -> None:
    @xp.kernel
    def product(i, x, y):
        return x[i] * y[i]

    @xp.kernel
    def element(i, x):
        return x[i]

    n = 5003
    draw = np.random.default_rng(2)
    x, y = [draw.integers(-99, 99, n).astype(float) for _ in range(2)]
    a, b = xp.asarray(x), xp.asarray(y)
    xp.evaluate(a, b)
    with xp.config.override(debug=True, host_us=0):
        folded = [
            product.reduce(n, a, b),
            element.reduce(((1, n - 1),), a),
            element.reduce(((2, n - 70),), a, op="argmin"),
        ]
        searched = [
            element.reduce(((3, n - 5),), b, op="max"), element.reduce(((9, n),), b, op="argmax"),
        ]
        assert xp.explain(*folded).kernels[0].nbytes < 2.1 * x.nbytes
        for found in (folded, searched):
            assert launched(xp, *found) == 1
            xp.evaluate(*found)
    expected = [x @ y, x[1:-1].sum(), x[2:-70].argmin(), y[3:-5].max(), y[9:].argmax()]
    assert [float(each) for each in folded + searched] == [float(each) for each in expected]


def test_linked_scans_over_unequal_ranges_are_one_launch(
    xp: ModuleType,
) -> None:
    @xp.kernel
    def element(i, x):
        return x[i]

    @xp.kernel
    def product(i, x, y):
        return x[i] * y[i]

    n = 3001
    draw = np.random.default_rng(2)
    x, y = [draw.integers(-99, 99, n).astype(float) for _ in range(2)]
    a, b = xp.asarray(x), xp.asarray(y)
    xp.evaluate(a, b)
    with xp.config.override(debug=True, host_us=0):
        apart = [element.scan(n, a), element.scan(((1, n - 1),), b)]
        assert launched(xp, *apart) == 2  # they have nothing in common
        found = [*apart, product.scan(((3, n - 5),), a, b)]
        assert launched(xp, *found) == 1
        xp.evaluate(*found)
    for one, other in zip(
        found, [x.cumsum(), y[1:-1].cumsum(), (x * y)[3:-5].cumsum()], strict=True
    ):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("shape", [(40, 301), (401, 130)], ids=str)
@pytest.mark.parametrize("settings", [{}, {"stream_bytes": 0}], ids=["cached", "streamed"])
def test_what_goes_down_columns_joins_a_step_of_the_interior(
    xp: ModuleType, shape: tuple[int, int], settings: dict[str, int]
) -> None:
    def step(m: Any, a: Any, b: Any) -> None:
        b[1:-1, 1:-1] = a[:-2, 1:-1] + a[2:, 1:-1] - a[1:-1, :-2] - a[1:-1, 2:]

    draw = np.random.default_rng(3)
    x, y = [draw.integers(-9, 9, shape).astype(float) for _ in range(2)]
    y[7, 9] = -0.0
    down = {
        "sum": lambda m, a, b: b.sum(axis=0),
        "part": lambda m, a, b: b[2:-1, 3:-4].max(axis=0),
        "rows": lambda m, a, b: b[2:-1, 3:-4].min(axis=1),
        "find": lambda m, a, b: b.argmin(axis=0),
        "scan": lambda m, a, b: m.cumsum(b, axis=0),
        "product": lambda m, a, b: m.cumprod(m.where(b > 0, 2.0, -0.5), axis=0),
        "two": lambda m, a, b: m.cumsum(a, axis=0) + b,
    }
    for name, fold in down.items():
        c = y.copy()
        step(np, x, c)
        expected = fold(np, x, c)
        with xp.config.override(debug=True, host_us=0, **settings):
            a, b = xp.asarray(x), xp.array(y)
            xp.evaluate(a, b)
            step(xp, a, b)
            found = fold(xp, a, b)
            assert launched(xp, b, found) == 1, name
            xp.evaluate(b, found)
        np.testing.assert_array_equal(b, c, err_msg=name)
        np.testing.assert_array_equal(found, expected, err_msg=name)
        assert found.dtype == expected.dtype


@pytest.mark.parametrize("axis", [0, 1])
def test_parts_that_kernels_write_join_a_scan_or_a_fold_of_all(
    xp: ModuleType, axis: int
) -> None:
    @xp.kernel
    def twice(i, j, x, y):
        y[i, j] = 2 * x[i, j]

    draw = np.random.default_rng(4)
    x, y = [draw.integers(-9, 9, (90, 130)).astype(float) for _ in range(2)]
    a, b = xp.asarray(x), xp.asarray(y)
    xp.evaluate(a, b)
    joined = np.concatenate((2 * x, 2 * y), axis=axis)

    def written() -> Any:
        made = xp.empty(joined.shape)
        for part, source in zip(np.split(np.arange(joined.shape[axis]), 2), (a, b), strict=True):
            side = slice(int(part[0]), int(part[-1]) + 1)
            twice(x.shape, source, made[side] if axis == 0 else made[:, side])
        return made

    for name, read in {
        "scan": lambda m, y: [m.cumsum(y, axis=0)],
        "fold": lambda m, y: [y.max()],
        "rows": lambda m, y: [y.sum(axis=1)],
        "kept": lambda m, y: [y, m.cumsum(y, axis=0)],
        "part": lambda m, y: [y, y[3:-2, 5:].max(axis=0)],
    }.items():
        with xp.config.override(debug=True, host_us=0):
            found = read(xp, written())
            assert launched(xp, *found) == 1, name
            xp.evaluate(*found)
        for one, other in zip(found, read(np, joined), strict=True):
            np.testing.assert_array_equal(one, other, err_msg=name)


@pytest.mark.usefixtures("any_size")
@pytest.mark.parametrize("by", [1, 2, 9, 13])
def test_rows_that_go_on_in_the_next_ones(xp: ModuleType, by: int) -> None:
    def further(array: Any) -> Any:
        rows, columns = array.shape
        return array.reshape(-1)[by : by + (rows - 1) * columns].reshape(rows - 1, columns)

    programs: list[Callable[..., list[Any]]] = [
        lambda m, a, b: [y := m.cumsum(a, axis=-1), m.cumsum(further(y) + b[1:], axis=-1)],
        lambda m, a, b: [y := m.cumsum(a, axis=-1), further(y).sum(axis=0), b + y],
        lambda m, a, b: [m.cumsum(a * 2, axis=-1), m.cumsum(further(a * 2), axis=-1)],
        lambda m, a, b: [a.__setitem__(np.s_[1:], a[1:] + b[1:]), a, further(a).max(axis=-1)][1:],
    ]
    draw = np.random.default_rng(by)
    values = [draw.integers(-9, 9, (33, 14)).astype(float) for _ in range(2)]
    for program in programs:
        check_program(xp, program, values)


def test_a_product_along_rows_stays_apart_and_says_why(
    xp: ModuleType, planned_for: Callable[..., None]
) -> None:
    """NumPy's order makes a lane of each row: all that goes with it would be loaded one by one."""
    planned_for("cpu")
    a, b = xp.ones((90, 200)), xp.zeros((90, 200))
    xp.evaluate(a, b)
    b[1:-1] = a[1:-1] * 2
    scanned = xp.cumprod(b, axis=1)
    plan = xp.explain(b, scanned)
    assert len(plan.kernels) == 2
    assert any("in NumPy's order what lies side by side" in str(cut) for cut in plan.cuts)
    np.testing.assert_array_equal(scanned[:, -1], [0, *[2.0**200] * 88, 0])
