"""Packages whose compiled code takes NumPy's arrays alone: their functions, methods and attributes
take ours, in our arrays' memory."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import clfuse
from clfuse.interop.opening import open_doors
from clfuse.interop.third_party_patches import in_shared_memory
from tests.ecosystem.comparing import agree
from tests.support.processes import python

GRAY = (np.arange(40 * 50).reshape(40, 50) * 37 % 251).astype(np.uint8)
LINE = np.linspace(0.0, 1.0, 50)


# -- OpenCV ---------------------------------------------------------------------------------------


def corners(m: Any, cv2: Any) -> Any:
    picture = m.asarray(GRAY).repeat(6, 0).repeat(6, 1)
    points, described = cv2.ORB_create(20).detectAndCompute(picture, None)
    return [m.asarray([point.pt for point in points]), described]


def filtered(m: Any, cv2: Any) -> Any:
    found = cv2.KalmanFilter(2, 1)
    found.transitionMatrix = m.asarray([[1.0, 1.0], [0.0, 1.0]], np.float32)
    found.measurementMatrix = m.asarray([[1.0, 0.0]], np.float32)
    found.statePost = m.ones((2, 1), np.float32)
    return found.predict()


PICTURES: dict[str, Callable[[Any, Any], Any]] = {
    "a function": lambda m, cv2: cv2.GaussianBlur(m.asarray(GRAY), (5, 5), 1.5),
    "what waits to be computed": lambda m, cv2: cv2.blur(m.asarray(GRAY) / 255 + 1, (3, 3)),
    "a part": lambda m, cv2: cv2.resize(m.asarray(GRAY)[::2, 5:30], (10, 10)),
    "several": lambda m, cv2: cv2.merge([m.asarray(GRAY), m.asarray(GRAY)[::-1]]),
    "numbers": lambda m, cv2: cv2.threshold(
        m.asarray(GRAY), m.asarray(GRAY).mean(), m.asarray(GRAY).max(), cv2.THRESH_BINARY
    )[1],
    "a pair of numbers": lambda m, cv2: cv2.rectangle(
        m.zeros((9, 9), np.uint8), tuple(m.asarray([1, 1])), tuple(m.asarray([5, 6])), 255
    ),
    "lists of points": lambda m, cv2: cv2.fillPoly(
        m.zeros((30, 30), np.uint8), [m.asarray([[2, 2], [20, 4], [10, 20]], np.int32)], 9
    ),
    "objects": corners,
    "attributes": filtered,
    "points": lambda m, cv2: m.asarray(cv2.KeyPoint(m.asarray(LINE)[3], m.ones(2).sum(), 1.0).pt),
}


@pytest.mark.parametrize("host_us", [0, 50])
@pytest.mark.parametrize("name", PICTURES)
def test_opencv_takes_our_arrays(name: str, host_us: int) -> None:
    cv2 = pytest.importorskip("cv2")
    with clfuse.config.override(host_us=host_us):
        agree(lambda m: PICTURES[name](m, cv2), rtol=1e-6)


def test_opencv_draws_into_our_arrays() -> None:
    cv2 = pytest.importorskip("cv2")
    expected = np.zeros((30, 30, 3), np.uint8)
    picture = clfuse.zeros((30, 30, 3), np.uint8)
    before = picture.copy()
    for drawn in (expected, picture):
        cv2.circle(drawn, (15, 15), 10, (255, 0, 9), 2)
        cv2.line(drawn[5:], (0, 0), (29, 20), (0, 255, 0))
    assert_array_equal(picture.get(), expected)
    assert int(picture.sum(dtype=np.int64)) == int(expected.sum(dtype=np.int64))
    assert not before.get().any()


# -- h5py, PyWavelets -----------------------------------------------------------------------------


def test_h5py_writes_and_reads_our_arrays(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    line, table = clfuse.asarray(LINE), clfuse.asarray(GRAY)
    with h5py.File(tmp_path / "file.h5", "w") as file:
        file["line"] = line * 2
        stored = file.create_dataset("table", data=table, compression="gzip")
        stored[3] = table[4]
        stored[:, clfuse.asarray([1, 2])] = table[:, 7:9]
        stored.attrs["sum"] = line.sum()
        stored.attrs["line"] = line[:4]
        read = clfuse.zeros(LINE.size)
        file["line"].read_direct(read)
        expected = GRAY.copy()
        expected[3] = GRAY[4]
        expected[:, [1, 2]] = GRAY[:, 7:9]
        assert_array_equal(stored[()], expected)
        assert_array_equal(read.get(), LINE * 2)
        assert_array_equal(file["line"][line > 0.5], LINE[LINE > 0.5] * 2)
        assert stored.attrs["sum"] == LINE.sum()
        assert_array_equal(stored.attrs["line"], LINE[:4])


def test_wavelets_of_our_arrays() -> None:
    pywt = pytest.importorskip("pywt")
    agree(lambda m: pywt.wavedec(m.asarray(LINE), "db2", level=2), rtol=1e-12)
    agree(lambda m: pywt.waverec(pywt.wavedec(m.asarray(LINE), "db2"), "db2"), rtol=1e-12)
    agree(lambda m: pywt.dwt2(m.asarray(GRAY), "haar")[0], rtol=1e-12)
    agree(lambda m: pywt.cwt(m.asarray(LINE), m.arange(1, 5), "morl")[0], rtol=1e-12)


def test_numexpr_writes_to_our_arrays() -> None:
    numexpr = pytest.importorskip("numexpr")
    line, found = clfuse.asarray(LINE), clfuse.zeros(LINE.size)
    for factor in (2, 3):
        numexpr.evaluate("line * factor", {"line": line, "factor": factor}, out=found)
        assert_array_equal(found.get(), LINE * factor)
    numexpr.re_evaluate({"line": line + 1, "factor": 4})
    assert_array_equal(found.get(), (LINE + 1) * 4)


# -- the mechanism --------------------------------------------------------------------------------


def test_what_has_none_of_ours_in_it_stays_the_same_object() -> None:
    for value in (1.5, "text", LINE, (1, LINE), [LINE, 2], None, {"a": 1}, [[[[[]]]]]):
        assert in_shared_memory(value) is value


def test_functions_and_classes_of_a_package_are_opened_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Public ones that are its own; and names by which other modules of the package know them."""
    module, other = types.ModuleType("pywt.made"), types.ModuleType("pywt.other")
    source = """
def kind(*values): return [type(value).__name__ for value in values]
def _private(value): return type(value).__name__
class Kept:
    def __init__(self, value): self.kinds = [type(value).__name__]
    def __setitem__(self, key, value): self.kinds += [type(key).__name__, type(value).__name__]
    @staticmethod
    def told(value): return type(value).__name__
    @property
    def value(self): return self._value
    @value.setter
    def value(self, value): self._value = type(value).__name__
"""
    exec(source, vars(module))
    other.kind = module.kind  # type: ignore[attr-defined]
    for made in (module, other):
        monkeypatch.setitem(sys.modules, made.__name__, made)
    open_doors(module)
    opened = module.kind
    open_doors(module)
    assert module.kind is opened is other.kind
    x = clfuse.ones(3)
    ours = type(x).__name__
    assert module.kind(x, x[:1] + 1, (x,), 1) == ["ndarray", "ndarray", "tuple", "int"]
    assert type(in_shared_memory((x,))[0]) is np.ndarray
    assert module._private(x) == ours
    kept = module.Kept(x)
    kept[x] = x
    kept.value = x
    assert kept.kinds == ["ndarray"] * 3
    assert kept.value == module.Kept.told(x) == "ndarray"


PACKAGE = {
    "__init__.py": "from .inner import kind as first\nfrom . import after\n",
    "inner.py": "import pywt\n"
    "def kind(value): return type(value).__name__\n"
    "pywt.kind = kind\n"  # which waits for it
    "from . import within\n",
    "within.py": "from .inner import kind\n",  # while `inner` is not ended
    "after.py": "from .inner import kind\n",
}


def test_a_package_is_opened_wherever_it_imports_from(tmp_path: Path) -> None:
    package = tmp_path / "site-packages" / "pywt"
    package.mkdir(parents=True)
    for name, source in PACKAGE.items():
        (package / name).write_text(source)
    program = """
import clfuse, pywt
x = clfuse.ones(3)
places = pywt.first, pywt.kind, pywt.inner.kind, pywt.within.kind, pywt.after.kind
assert len(set(map(id, places))) == 1
assert [place(x) for place in places] == ["ndarray"] * 5
assert pywt.inner.kind.__wrapped__(x) == type(x).__name__
"""
    finished = python("-c", program, cwd=tmp_path, PYTHONPATH=str(package.parent))
    assert finished.returncode == 0, finished.stderr


def test_what_must_not_be_touched_in_a_package_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("pywt.lazy")
    source = """
import operator, types

class Later(types.ModuleType):  # one that is imported when it is asked for anything
    def __getattr__(self, name): raise ImportError(name)

class made_when_read:
    def __init__(self, function): self.function = function
    def __get__(self, owner, kind=None): return self.function(owner)

class Kind(type):
    @property
    def mean(cls): return "of the class"

class OfKind(metaclass=Kind):
    def mean(self): return "of an object"

class Watching:  # whose attributes are computed by a method of its own
    def __getattribute__(self, name): return Watching.found(self, name)
    def found(self, name): return object.__getattribute__(self, name)

class Negative:
    function = operator.neg
    @made_when_read
    def doubled(self): return lambda value: 2 * value
    def __mul__(self, other): return type(other).__name__

later = Later("later")
def total(table): return sorted(type(value).__name__ for value in table.values())
"""
    exec(source, vars(module))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    open_doors(module)
    made: Any = module
    assert made.Negative().function(2) == -2
    assert made.Negative().doubled(3) == 6
    assert (made.OfKind.mean, made.OfKind().mean()) == ("of the class", "of an object")
    assert made.Watching().found("__class__") is made.Watching
    x = clfuse.ones(3)
    assert made.total({"x": x, "y": 1, "z": [x]}) == ["int", "list", "ndarray"]
    assert made.Negative() * x == "ndarray"


def test_modules_of_the_program_are_not_taken_for_packages(tmp_path: Path) -> None:
    (tmp_path / "tables.py").write_text("def is_ours(x): return hasattr(x, 'get')")
    (tmp_path / "script.py").write_text(
        "import numpy as np, tables; print(tables.is_ours(np.ones(3)), tables.__file__)"
    )
    finished = python("-m", "clfuse", "run", "script.py", cwd=tmp_path)
    assert finished.stdout.split() == ["True", str(tmp_path / "tables.py")], finished.stderr


def test_packages_are_named_that_take_numpys_arrays_alone(tmp_path: Path) -> None:
    package = tmp_path / "site-packages" / "strict"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(
        "import numpy\n"
        "def doubled(x):\n"
        "    assert type(x) is numpy.ndarray\n"
        "    x *= 2\n"
    )
    (tmp_path / "script.py").write_text(
        "import numpy as np, strict\nx = np.ones(3)\nstrict.doubled(x)\nprint(x.sum())\n"
    )
    script = ("-m", "clfuse", "run", "script.py")
    path = str(tmp_path / "site-packages")
    refused = python(*script, cwd=tmp_path, PYTHONPATH=path)
    assert "AssertionError" in refused.stderr
    taken = python(*script, cwd=tmp_path, PYTHONPATH=path, CLFUSE_NUMPY_PACKAGES="other, strict")
    assert (taken.stdout, taken.returncode) == ("6.0\n", 0), taken.stderr


def test_torch_gets_the_memory_of_our_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = types.ModuleType("torch")
    for name in ("from_numpy", "as_tensor", "asarray"):
        setattr(torch, name, lambda array: array)
    monkeypatch.setitem(sys.modules, "torch", torch)
    open_doors(torch)
    for function in (torch.from_numpy, torch.as_tensor, torch.asarray):
        x = clfuse.ones(3)
        given = function(x)
        assert type(given) is np.ndarray
        given[1] = 5
        assert x.tolist() == [1, 5, 1]


def test_what_a_table_of_batches_says_of_numpys_holds_for_ours() -> None:
    collate: Any = types.ModuleType("torch.utils.data._utils.collate")
    numbers = (np.bool_, np.number)
    collate.default_collate_fn_map = {np.ndarray: "an array", numbers: "numbers", str: "a text"}
    open_doors(collate)
    table = collate.default_collate_fn_map
    with clfuse.config.override(host_us=0):
        x = clfuse.ones(3) + 1
        assert table[type(x)] == "an array"
        assert table[type(x.sum())] == table[type((x > 1).any())] == "numbers"
    assert table[np.ndarray] == "an array"


# -- CasADi ---------------------------------------------------------------------------------------


def least_squares(m: Any, casadi: Any) -> Any:
    points = m.asarray([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    x = casadi.SX.sym("x", 2)
    rest = casadi.mtimes(points, x) - m.asarray([1.0, 3.0, 5.0])
    solve = casadi.qpsol("solve", "qrqp", {"x": x, "f": casadi.sumsqr(rest)}, {
        "print_iter": False, "print_header": False, "print_time": False, "error_on_fail": True,
    })  # fmt: skip
    return m.asarray(solve(x0=m.zeros(2), lbx=m.full(2, -9.0), ubx=m.full(2, 9.0).max())["x"])


@pytest.mark.parametrize("host_us", [0, 50])
def test_casadi_takes_our_arrays(host_us: int) -> None:
    casadi = pytest.importorskip("casadi")
    with clfuse.config.override(host_us=host_us):
        agree(lambda m: least_squares(m, casadi), rtol=1e-6)
        agree(lambda m: m.asarray(casadi.DM(m.asarray(GRAY[:2, :3]) * 2.0)))
        agree(lambda m: m.asarray(casadi.dot(casadi.DM([1, 2]), m.asarray(LINE[:2]))))
