"""The commonest mistakes: each ends in the user's line, NumPy's or clfuse's words, and a fix that
works. The table in clfuse/guide/mistakes.md has the same ones."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import clfuse
from clfuse.advice import OF_OTHER_MODULES, OF_OTHERS, RULES, advice

pytestmark = pytest.mark.clfuse_only

PAGE = Path(str(clfuse.__file__)).parent / "guide" / "mistakes.md"


@dataclass
class Mistake:
    """A program that ends in `error`. Its last line is the wrong one unless `line` is; the error
    is shown there or `at` another line. `said` is in the advice, and with `fix` in the wrong line's
    place it runs."""

    text: str
    error: str
    said: str
    fix: str
    line: str = ""
    at: str = ""

    @property
    def wrong(self) -> str:
        return self.line or self.text.splitlines()[-1]


def jitted(body: str, line: str, call: str = "f(np.arange(3.0))", more: str = "") -> str:
    """A jitted function of this body."""
    lines = [each for each in body.splitlines() if each]
    return "\n".join(
        ["@np.jit", f"def f(x{more}):", *[f"    {each}" for each in [*lines, line]],
         "    return x", call]
    )


MISTAKES: dict[str, Mistake] = {
    "truth": Mistake(
        "a = np.arange(4.0)\nif a > 2: a = -a", "ValueError: The truth value of an array",
        "np.where(condition, a, b)", "a = np.where(a > 2, -a, a)"),
    "in place": Mistake(
        "a = np.array([1, 2, 3])\na /= 2", "Cannot cast ufunc 'divide' output",
        "`a = a / 2`", "a = a / 2"),
    "broadcast": Mistake(
        "a = np.ones((3, 4))\nm = a.mean(axis=1)\nb = a - m",
        "ValueError: operands could not be broadcast together with shapes (3,4) (3,)",
        "index it with `[:, None]`", "b = a - m[:, None]"),
    "ragged": Mistake(
        "rows = [[1, 2], [3]]\na = np.array(rows)", "inhomogeneous shape", "pad them",
        "a = np.array([row + [0] * (2 - len(row)) for row in rows])"),
    "float index": Mistake(
        "a = np.arange(10.0)\nb = a[len(a) / 2]", "IndexError: only integers, slices",
        "write `//`", "b = a[len(a) // 2]"),
    "shape in pieces": Mistake(
        "a = np.zeros(3, 4)", "TypeError: Cannot interpret '4' as a data type",
        "`np.zeros((3, 4))`", "a = np.zeros((3, 4))"),
    "unhashable": Mistake(
        "a = np.arange(3.0)\nknown = {a: 1}", "TypeError: unhashable type: 'ndarray'",
        "`x.tobytes()`", "known = {a.tobytes(): 1}"),
    "text": Mistake(
        "a = np.array(['1', '2'])\nb = a * 2.0", "did not contain a loop", "`.astype(float)`",
        "b = a.astype(float) * 2.0"),
    "attribute": Mistake(
        "a = np.arange(3.0)\na = a.at[1].set(5)",
        "AttributeError: 'ndarray' object has no attribute 'at'", "`x[i] = v`", "a[1] = 5"),
    "name": Mistake(
        "a = np.arange(3.0)\nxp = np.get_array_module(a)",
        "AttributeError: module 'clfuse' has no attribute 'get_array_module'",
        "`import clfuse as np` is enough", "xp = np"),
    "several arrays": Mistake(
        "a = np.arange(3.0)\nb = np.concatenate(a, a)",
        "TypeError: only integer scalar arrays", "`np.concatenate((a, b))`",
        "b = np.concatenate((a, a))"),
    "precedence": Mistake(
        "a = np.arange(3.0)\nb = a[a > 0 & a < 2]", "TypeError: ufunc 'bitwise_and' not supported",
        "`(a > 0) & (a < 1)`", "b = a[(a > 0) & (a < 2)]"),
    "JSON": Mistake(
        "import json\na = np.arange(3.0)\ntext = json.dumps({'a': a})",
        "TypeError: Object of type ndarray is not JSON serializable", "`x.tolist()`",
        "text = json.dumps({'a': a.tolist()})"),
    "inner extents": Mistake(
        "a = np.ones((3, 4))\nb = a @ a", "ValueError: matmul: Input operand 1 has a mismatch",
        "`a @ b.T`", "b = a @ a.T"),
    "read-only": Mistake(
        "import numpy\na = np.arange(3000.0) * 2\nb = numpy.asarray(a)\nb[0] = 5",
        "ValueError: assignment destination is read-only", "`x.get()`", "a.get()[0] = 5"),
    "in C": Mistake(
        "import numpy\na = np.arange(3.0)\n"
        "def c(x):\n"
        "    if type(x) is not numpy.ndarray: raise TypeError('x is not a numpy array')\n"
        "c(a)", "TypeError: x is not a numpy array", "clfuse.asnumpy(x)", "c(np.asnumpy(a))"),
    "one number": Mistake(
        "import math\na = np.arange(3.0)\nb = math.sqrt(a)", "TypeError: only",
        "`np.sqrt(x)`", "b = np.sqrt(a)"),
    "jit: condition": Mistake(
        jitted("", "if x.sum() > 0: x = -x"), "JitError: a value is looked at",
        "np.where(condition, a, b)", "x = np.where(x.sum() > 0, -x, x)",
        "    if x.sum() > 0: x = -x"),
    "jit: number": Mistake(
        jitted("", "x = x / float(x.max())"), "JitError: a value is looked at",
        "no `float`", "x = x / x.max()", "    x = x / float(x.max())"),
    "jit: selection": Mistake(
        jitted("", "x = x[x > 1].prod()"), "JitError: a value is looked at",
        "`np.where(mask, x, 0)`", "x = np.where(x > 1, x, 1).prod()",
        "    x = x[x > 1].prod()"),
    "jit: count": Mistake(
        jitted("", "x = x * np.arange(n)", "f(np.arange(3.0), np.array(3))", ", n"),
        "JitError: a value is looked at", "as a Python number", "f(np.arange(3.0), 3)",
        "f(np.arange(3.0), np.array(3))", "x = x * np.arange(n)"),
    "jit: other functions": Mistake(
        "import numpy\n" + jitted("", "x = numpy.asarray(x) * 2"),
        "JitError: a value is looked at", "take clfuse's of the same name", "x = np.asarray(x) * 2",
        "    x = numpy.asarray(x) * 2"),
    "memory": Mistake(
        "n = 1_000_000_000_000\na = np.sort(np.arange(n) + np.arange(1.0))\nprint(a[3])",
        "AllocationError: ", "use smaller arrays or work in parts",
        "print(np.sort(np.arange(1000.0))[3])"),
    "no device": Mistake(
        "np.set_device('abacus')", "DeviceError: no OpenCL device fits 'abacus'",
        "python -m clfuse doctor", "np.set_device(None)"),
    "fork": Mistake(
        "import multiprocessing\n"
        "code = '__kernel void one(__global double *y) { y[get_global_id(0)] = 1; }'\n"
        "def work():\n"
        "    y = np.zeros(3)\n"
        "    np.RawKernel(code, 'one')((1,), (3,), (y,))\n"
        "    assert float(y.sum()) == 3\n"
        "work()\n"
        "process = multiprocessing.get_context('fork').Process(target=work)\n"
        "process.start(); process.join(); assert process.exitcode == 0, process.exitcode",
        "DeviceError: ", "multiprocessing.get_context('spawn')",
        "process = multiprocessing.get_context('spawn').Process(target=abs, args=(1,))",
        "process = multiprocessing.get_context('fork').Process(target=work)"),
}  # fmt: skip
"""The order is that of the page."""


def shown(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    (folder / "program.py").write_text(
        "import clfuse as np\nif __name__ == '__main__':\n"
        + "".join([f"    {line}\n" for line in text.splitlines()]),
        encoding="utf-8",
    )
    return subprocess.run(
        [sys.executable, "program.py"], cwd=folder, capture_output=True, text=True, timeout=120,
        env={**os.environ, "CLFUSE_HOST_US": "50", "PYTHONWARNINGS": "ignore"},
    )


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python shows no notes")
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_ends_in_its_fix(name: str, tmp_path: Path) -> None:
    mistake = MISTAKES[name]
    finished = shown(tmp_path, mistake.text)
    assert finished.returncode, finished.stdout
    assert mistake.error in finished.stderr, finished.stderr
    assert mistake.said in finished.stderr[finished.stderr.index(mistake.error) :]
    if name != "fork":  # that comes from another process, in which all frames are shown
        frames = finished.stderr[: finished.stderr.rindex(mistake.error)].splitlines()
        code = [each.strip() for each in frames if each.strip(" ~^")]
        ends = code if name == "JSON" else code[-3:]  # frames of `json` stand below
        assert (mistake.at or mistake.wrong.strip()) in ends, finished.stderr


@pytest.mark.parametrize("name", MISTAKES)
def test_the_fix_works(name: str, tmp_path: Path) -> None:
    mistake = MISTAKES[name]
    indent = " " * (len(mistake.wrong) - len(mistake.wrong.lstrip()))
    assert mistake.text.count(mistake.wrong) == 1
    finished = shown(tmp_path, mistake.text.replace(mistake.wrong, indent + mistake.fix))
    assert not finished.returncode, finished.stderr


def test_the_page_has_the_same_mistakes() -> None:
    rows = re.findall(r"(?m)^\| ([\w: -]+) \| `", PAGE.read_text(encoding="utf-8"))
    assert rows == list(MISTAKES)
    assert len(rows) == 25


def test_every_rule_has_a_mistake() -> None:
    assert {name.partition(":")[0] for name in MISTAKES} >= set(RULES)


# -- what is said depends on the line -----------------------------------------------------------


def said(text: str) -> str:
    """The advice about what a program raises."""
    import linecache

    name = "<mistake>"
    linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
    try:
        exec(compile(text, name, "exec"), {"np": clfuse})
    except Exception as error:
        return advice(error)
    finally:
        del linecache.cache[name]
    raise AssertionError(f"nothing wrong with {text}")


@pytest.mark.parametrize(("text", "expected"), [
    ("a = np.arange(4.0)\nb = (a > 1) and (a < 3)", "`&`, `|` and `~`"),
    ("a = np.arange(4.0)\nif 0 < a < 2: pass", "`0 < a < 2` asks for one truth value"),
    ("a = np.arange(4.0)\nb = a & (a > 2)", "bind more tightly"),
    ("a = np.arange(4.0)\nb = a & 2", "compare first"),
    ("import json\njson.dumps(np.arange(3).sum())", "of a single value"),
    ("a = np.arange(4.0)\nb = not a", "`&`, `|` and `~`"),
    ("a = np.arange(4.0)\nb = a in [a + 1, a + 2]", "np.isin(value, array).any()"),
    ("a = np.ones((2, 3))\nb = a + np.ones((3, 2))", "write `.T`"),
    ("a = np.ones(3)\na[:] = np.ones(4)", "(4,) and (3,) differ there"),
    ("a = np.ones((3, 4, 5))\nb = np.ones((3, 4)) * a", "`[:, :, None]`"),
    ("a = np.arange(3)\nb = int(a)", "`x.astype(int)`"),
    ("a = np.arange(3)\nb = a[1.0]", "whole number"),
    ("a = np.arange(4)\na **= 0.5", "`a = a ** 0.5`"),
    ("f = np.jit(lambda x: x if x[0] else -x)\nf(np.arange(3.0))", "np.where(condition, a, b)"),
    ("@np.jit\ndef f(x):\n    print(x)\nf(np.arange(3.0))", "print what the call gives"),
    ("@np.jit\ndef f(x):\n    return np.unique(x)\nf(np.arange(3.0))", "Keep the shape"),
    ("@np.jit\ndef f(x, n):\n    for _ in range(n): x = -x\n    return x\n"
     "f(np.arange(3.0), np.array(2))", "as a Python number"),
])  # fmt: skip
def test_the_line_decides_what_is_said(text: str, expected: str) -> None:
    assert expected in said(text)


@pytest.mark.parametrize("name", OF_OTHERS)
def test_attributes_of_other_libraries_have_a_name_here(name: str) -> None:
    assert OF_OTHERS[name] == said(f"x = np.arange(3.0)\nx.{name}")


@pytest.mark.parametrize("name", OF_OTHER_MODULES)
def test_names_of_other_libraries_have_a_name_here(name: str) -> None:
    assert OF_OTHER_MODULES[name] == said(f"np.{name}")


def test_a_missing_name_ends_in_the_programs_line(tmp_path: Path) -> None:
    finished = shown(tmp_path, "x = np.sine(2.0)")
    assert "namespace.py" not in finished.stderr
    assert "module 'clfuse' has no attribute 'sine'" in finished.stderr


def test_other_errors_and_classes_get_no_advice() -> None:
    assert said("x = np.arange(3.0)\nx.shapes") == ""
    assert said("class Other: pass\nOther().compute()") == ""
    assert said("raise ValueError('something else')") == ""
    assert said("{}['truth']") == ""
    assert said("np.sine(2.0)") == ""
    assert said("[1, 2][np.arange(3)]") == ""
    assert said("import json\njson.dumps({1})") == ""
    assert said("class Mute(ValueError):\n    def __str__(self): return 1 / 0\nraise Mute") == ""
