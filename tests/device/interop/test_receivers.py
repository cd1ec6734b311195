"""Packages write to what ``numpy.asarray`` gave them of an array of ours, as they do to NumPy's."""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import clfuse as cf
from clfuse.arrays.conversion import host_view
from clfuse.interop.opening import open_to_ours
from clfuse.interop.receivers import parameters_written
from clfuse.interop.third_party_patches import deeply

pytestmark = pytest.mark.skipif(
    sys.version_info < (3, 11), reason="code knows its columns since Python 3.11"
)

PACKAGE = '''
import numpy as np
from numpy import asarray


def augmented(x):
    x = np.asarray(x, dtype=float)
    x += 1
    return x.sum()


def element(x):
    for _ in range(2):
        seen = asarray(x)
        seen[1] = 7


def through_a_view(x):
    flat = np.asarray(x).T.reshape(-1)
    part = flat[1:3]
    part[:] = -1


def by_method(x):
    np.asarray(x).fill(4)


def by_function(x):
    seen = np.asarray(x)
    np.copyto(seen, 9)


def as_output(x):
    np.add(1, 1, out=np.asarray(x))


def at_once(x):
    np.asarray(x)[0] *= 5


def chosen(x, is_array=True):
    seen = np.asarray(x) if is_array else None
    seen[0] = 3


def named_in_passing(x):
    if (seen := np.asarray(x)) is not None:
        seen[2] = 8


def _given(x):
    made = np.asarray(x)
    if made.ndim == 0:
        made = made[()]
    return made


def received(x):
    seen = _given(x)
    seen[0] = 6


class Holder:
    def __init__(self, x):
        self._x = x

    @property
    def values(self):
        return _given(self._x)


def read(x):
    seen = np.asarray(x)
    total = {}
    total["sum"] = seen.sum()
    rows = [0, 0]
    rows[0] = seen
    other = np.sort(seen)
    other[0] = 5
    return seen


def of_a_lambda(x):
    return (lambda y: np.asarray(y).sum())(x)


def corrected(x, start=1, *, other=None):
    x[start:] += 1
    if other is not None:
        other = np.asarray(other)
        other *= 2
    return x


def copied(x, other):
    x = np.sort(x)
    x[0] = other[0]
    other, total = other + 1, {}
    other += 1
    total["sum"] = other.sum()
    return x


def sometimes(x, copy=True):
    if copy:
        x = x.copy()
    x[0] = 4
    return x
'''

WRITERS = [
    "augmented", "element", "through_a_view", "by_method", "by_function", "as_output", "at_once",
    "chosen", "named_in_passing", "received",
]  # fmt: skip


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[types.ModuleType]:
    """A package that is installed."""
    folder = tmp_path_factory.mktemp("environment") / "site-packages"
    (folder / "writes_in_place").mkdir(parents=True)
    (folder / "writes_in_place" / "__init__.py").write_text(PACKAGE)
    sys.path.insert(0, str(folder))
    yield importlib.import_module("writes_in_place")
    sys.path.remove(str(folder))
    del sys.modules["writes_in_place"]


MAKERS: dict[str, Callable[[Any], Any]] = {
    "new": lambda np: np.arange(6.0),
    "computed": lambda np: np.arange(6.0) * 2 + 1,
    "large": lambda np: np.sqrt(np.arange(200_000.0)),
    "a view": lambda np: np.arange(24.0)[2:14:2],
}


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("name", WRITERS)
def test_what_a_package_writes_is_in_the_array(
    package: types.ModuleType, name: str, maker: str
) -> None:
    expected, actual = MAKERS[maker](np), MAKERS[maker](cf)
    for _ in range(2):
        getattr(package, name)(expected)
        getattr(package, name)(actual)
        np.testing.assert_array_equal(cf.asnumpy(actual), expected)
        expected *= 2
        actual *= 2


def test_a_package_that_reads_gets_a_snapshot(package: types.ModuleType) -> None:
    x = cf.arange(6.0) + 1
    seen = package.read(x)
    x += 1
    assert not seen.flags.writeable
    np.testing.assert_array_equal(seen, np.arange(6.0) + 1)
    assert package.of_a_lambda(x) == 27


def test_a_program_writes_to_what_a_package_returns(package: types.ModuleType) -> None:
    x = cf.arange(4.0)
    package.Holder(x).values[0] = 5
    held = package.Holder(x).values
    held[1:3] += 10
    np.testing.assert_array_equal(cf.asnumpy(x), [5, 11, 12, 3])


def test_a_program_that_reads_gets_a_snapshot(package: types.ModuleType) -> None:
    seen = package.Holder(cf.arange(4.0)).values
    assert not seen.flags.writeable


def test_what_must_not_be_written_to_stays_so(package: types.ModuleType) -> None:
    x = cf.arange(4.0)
    x.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        package.element(x)


def test_a_package_without_source_gets_a_snapshot(tmp_path: Path) -> None:
    code = "import numpy\ndef write(x):\n    seen = numpy.asarray(x)\n    seen[0] = 1\n"
    names: dict[str, Any] = {"__name__": "gone"}
    exec(compile(code, str(tmp_path / "site-packages" / "gone" / "__init__.py"), "exec"), names)
    with pytest.raises(ValueError, match="read-only"):
        names["write"](cf.arange(4.0))


def test_parameters_that_a_function_writes_to_are_known(package: types.ModuleType) -> None:
    assert parameters_written(package.corrected) == {"x", "other"}
    assert parameters_written(package.sometimes) == {"x"}
    assert parameters_written(package.at_once) == {"x"}
    for name in ("copied", "read", "of_a_lambda"):
        assert not parameters_written(getattr(package, name)), name
    assert not parameters_written(np.dot)
    assert not parameters_written(len)


@pytest.mark.parametrize("by_name", [False, True])
def test_a_function_that_gets_numpys_arrays_writes_to_ours(
    package: types.ModuleType, by_name: bool
) -> None:
    corrected = open_to_ours(package.corrected, deeply(host_view))
    x, other = cf.arange(4.0), cf.arange(3.0)
    corrected(x=x, other=other) if by_name else corrected(x, 1, other=other)
    np.testing.assert_array_equal(cf.asnumpy(x), [0, 2, 3, 4])
    np.testing.assert_array_equal(cf.asnumpy(other), [0, 2, 4])
    copied = open_to_ours(package.copied, deeply(host_view))
    np.testing.assert_array_equal(copied(x, other), [0, 2, 3, 4])
    np.testing.assert_array_equal(cf.asnumpy(other), [0, 2, 4])
