"""The compiled cases answer what the plain ones do, and say who of them is there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import clfuse
from clfuse._core import loading

pytestmark = pytest.mark.clfuse_only

ROOT = Path(__file__).parents[3]

PROGRAM = '''
import itertools, sys, threading, warnings
import numpy
import clfuse as np
from clfuse._core import loading

print(loading.state(), file=sys.stderr)
RANDOM = numpy.random.default_rng(5)

def told(call):
    """What a call gives or raises, and what it warns of, as text."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            value = call()
            if isinstance(value, np.ndarray):
                value = type(value).__name__, str(value.dtype), value.shape, value.tolist()
            answer = repr(value)
        except Exception as error:
            answer = f"{type(error).__name__}: {error}"
    return answer, [(str(w.message), w.category.__name__) for w in seen]

def arrays():
    """Equal every time: nobody has written to these yet. Some lie on the host, some do not."""
    lib = np if RECORDED else numpy
    x = lib.arange(1.0, 13.0).reshape(3, 4)
    found = [x, x.astype("f4"), x.astype("i4"), x > 5, x * 1j, x[0]]
    if not RECORDED:
        found = [np.asarray(a) for a in found]
    a, b = found[0], found[2]
    return [*found, a[1:], a[:, ::-1], a.T, b[1:, 1:3], a[1:][:, 2], np.asarray(2.5)]

VALUES = [2, 2.0, -0.0, 0, 300, True, 1j, numpy.float32(3), numpy.int64(3), float("nan"), None,
          "text", [1, 2, 3, 4], numpy.ones(4), 2**70]
OPERATORS = "+ - * / // % ** & | ^ << >> == != < <= > >=".split()
CALLS = ["-a", "+a", "abs(a)", "~a", "np.sqrt(a - 3)", "np.exp(a)", "np.add(a, 1)", "a.sum()",
         "a.max(axis=-1)", "np.where(a, a, 1)", "a.T", "a.T.reshape(-1)", "a.ravel()[::2]",
         "np.unique(a)", "np.add(a, a, out=a[:])", "np.add(a, 1, dtype='c8')", "a[a > 3]",
         "np.add.reduce(a)", "np.copyto(a, 3)", "a.astype('i1')", "np.median(a)", "list(a)",
         "a.sort()", "np.maximum(a, 2, where=a > 3, out=a)", "np.concatenate([a, a])",
         "np.array([a, a])", "bytes(a)", "bytes(a.sum())", "bytes(a[:, ::2])"]
OPERANDS = [2, 2.5, 0, "a", "a[::-1]", "arrays()[1]", "1j"]
INDICES = ["0", "-1", "5", "0, 0", "2, 3", "2, 4", "-3, -4", "1:", "::-1", ":, 1:3", "0, :2", "1:1",
           "::0", "1.0", "True", "None", "..., 1", "[0, 1]", "numpy.int64(1)", "'x'",
           "slice(0, 9.0)", "0, 0, 0", "()", "2**70",
           "slice(None, None, -2), slice(-9, 99)", "numpy.True_"]

for RECORDED in (False, True):
    for operator in OPERATORS:
        for one, two in itertools.product(range(12), range(12)):
            if (one + two) % 4 == 0:
                a, b = arrays()[one], arrays()[two]
                print(RECORDED, operator, one, two, told(lambda: eval(f"a {operator} b")))
        for number, (one, two) in enumerate(itertools.product(range(12), VALUES)):
            if (number + len(operator)) % 2:
                continue
            a = arrays()[one]
            print(operator, one, two, told(lambda: eval(f"a {operator} two")))
            print("r", told(lambda: eval(f"two {operator} a")))
    for one, name in itertools.product(range(12), CALLS):
        a = arrays()[one]
        print(name, one, told(lambda: eval(name)))
    for one, index in itertools.product(range(12), INDICES):
        a = arrays()[one]
        print(index, one, told(lambda: eval(f"a[{index}]")), told(lambda: eval(f"a[{index}][0]")))
        for value in (7.0, 7, numpy.float32(7), "a[0]", "a * 2", f"a[{index}]"):
            a, every = (found := arrays())[one], found[0]
            given = value if not isinstance(value, str) else None
            def write():
                global given
                if given is None:
                    given = eval(value)
                a.__setitem__(eval(f"({index})"), given)
                return a
            print(index, one, value, told(write), every.tolist())
    for operator in OPERATORS[:12]:
        for one, value in itertools.product(range(12), OPERANDS):
            a, every = (found := arrays())[one], found[0]
            held = every[0]
            space = {"a": a, "arrays": arrays}
            def change():
                exec(f"a {operator}= {value}", space)
                return space["a"]  # what is recorded warns when it is looked at
            print(operator, one, value, told(change), told(lambda: space["a"])[0],
                  every.tolist(), held.tolist())
    # Whoever holds what was there before sees no write.
    a = arrays()[0]
    before = a.copy(), a + 0, numpy.asarray(a), a[0] + 0, a[1, 1]
    a[0, 0] = 99.0; a[1] = a[0]; a[:, 1] -= a[:, 0]; a[2, 3] -= a[0, 0] * 2; a[1:] += a[:1]; a -= a
    print([b.tolist() for b in before], a.tolist())
    with np.errstate(all="ignore"):
        print(told(lambda: np.asarray([1.0, 0.0]) / 0.0))
    with np.errstate(all="raise"):  # NumPy has written when it raises; nothing else has
        print(told(lambda: np.asarray([1.0, 0.0]) / 0.0), told(lambda: a.__itruediv__(0.0)))

# Views of views of views, of memory that is written to, and that is replaced by a copy meanwhile.
x = y = np.asarray(numpy.arange(50.0))
views, held = [], []
for number in range(12):
    y = y[1:] if number % 3 else y[::-1]
    views.append(y)
    y[number % 4] += x[2] * number
    held.append(numpy.asarray(x) if number % 2 else x.copy())
    x[number:] -= y[0]
    y[1:] = y[:-1]
    y[:2], x[-1] = x[3:5], number
    print(x.tolist(), *[(v.tolist(), v.strides, v.base is x) for v in views])
x.shape = 5, 10
x[1, 2:5] = 7
del y
print(x.tolist(), *[v.tolist() for v in [*views, *held]])

@np.jit
def traced(x, y):
    x[0] = x[1] + y[0]
    x[1:] *= 2.0
    return x[::-1] - y

for _ in range(3):
    x, y = np.arange(5.0), np.ones(5)
    print(traced(x, y).tolist(), x.tolist())

totals = [None] * 4
def work(number):
    x = np.asarray(numpy.arange(60.0))
    for _ in range(300):
        x = x * 1.001 + x[::-1] * 0.001
        x[number] -= x[0]
    totals[number] = x.tolist()
threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
print(totals)
'''


def said(mode: str, host_us: int) -> tuple[list[str], str]:
    """What the program prints, and the state that it tells."""
    environment = {
        **os.environ,
        "CLFUSE_COMPILED": mode,
        "CLFUSE_HOST_US": str(host_us),
    }
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM],
        env=environment, capture_output=True, text=True, check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines(), done.stderr.splitlines()[0]


@pytest.fixture
def on_the_host() -> Iterator[None]:
    """Small arrays are NumPy's, as they are for users."""
    with clfuse.config.override(host_us=50):
        yield


def needs_a_compiled_module() -> None:
    is_asked_for = os.environ.get("CLFUSE_TEST_DEVICE") == "required" and shutil.which("cc")
    if loading.state() == "not built" and is_asked_for:
        pytest.fail("there is a C compiler, and the compiled part is not built")
    if loading.state() in ("not built", "off (CLFUSE_COMPILED)"):
        pytest.skip(f"the compiled module is {loading.state()}")


def test_what_is_compiled_gives_the_same_as_plain_python() -> None:
    needs_a_compiled_module()
    sooner, one = said("on", 50)
    plain, two = said("off", 50)
    assert (one, two) == ("in use", "off (CLFUSE_COMPILED)")
    assert len(plain) > 3000
    assert [pair for pair in zip(sooner, plain, strict=True) if pair[0] != pair[1]] == []


@pytest.mark.usefixtures("on_the_host")
def test_views_that_outlive_a_write_see_what_their_array_holds() -> None:
    x = clfuse.asarray(np.arange(6.0))
    row, whole = x[1:4], x[:]
    snapshot = np.asarray(x)  # somebody else has the memory from now on
    x[2] = 9
    assert row.tolist() == [1, 9, 3]
    row += 1
    assert whole.tolist() == x.tolist() == [0, 2, 10, 4, 4, 5]
    assert snapshot.tolist() == [0, 1, 2, 3, 4, 5]
    del x
    assert row.base.tolist() == whole.tolist()


@pytest.mark.usefixtures("on_the_host")
def test_an_array_at_an_old_address_has_nothing_of_the_old_one() -> None:
    ended: list[int] = []
    for number in range(200):  # more than are kept for the next
        x = clfuse.asarray(np.full(3, float(number)))
        view = x[1:]
        held = weakref.ref(view, lambda _, number=number: ended.append(number))
        view *= 2
        assert view.tolist() == [2.0 * number] * 2
        assert (x + 1).base is None
        del view
        assert held() is None
    assert ended == list(range(200))


def test_operators_that_somebody_gives_the_class_are_asked() -> None:
    """In a process of its own: from then on Python asks the class before the compiled part."""
    code = (
        "import clfuse\n"
        "x = clfuse.ones(3)\n"
        "kind = type(x)\n"
        "add, getitem = kind.__add__, kind.__getitem__\n"
        "kind.__add__ = lambda self, other: 'added'\n"
        "kind.__getitem__ = lambda self, index: 'part'\n"
        "assert (x + x, x[0]) == ('added', 'part')\n"
        "kind.__add__, kind.__getitem__ = add, getitem\n"
        "assert (x + x).tolist() == [2, 2, 2]\n"
        "assert x[0] == 1\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr


def test_settings_count_from_the_next_operation_on() -> None:
    x = clfuse.asarray(np.ones(3))
    with clfuse.config.override(host_us=0):
        before = clfuse.stats()["nodes_recorded"]
        recorded = (x * 3 + x).tolist()
        assert clfuse.stats()["nodes_recorded"] > before
    with clfuse.config.override(host_us=50):
        y = clfuse.asarray(np.ones(3))
        before = clfuse.stats()["nodes_recorded"]
        z = y * 3 + y
        assert clfuse.stats()["nodes_recorded"] == before
    assert z.tolist() == recorded


def test_a_module_built_from_another_text_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    needs_a_compiled_module()
    for path in loading.FOLDER.glob("*.p[yx][xi]"):
        shutil.copy(path, tmp_path)
    monkeypatch.setattr(loading, "FOLDER", tmp_path)
    assert loading.find()[1] == "in use"
    with (tmp_path / "known_graphs.pxi").open("a") as text:
        text.write("\n")
    with pytest.warns(RuntimeWarning, match="built from another text"):
        module, state = loading.find()
    assert module is None
    assert "another text" in state


def test_a_setting_turns_it_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLFUSE_COMPILED", "off")
    assert loading.find() == (None, "off (CLFUSE_COMPILED)")
