"""The guide's recipe for a ufunc, followed with its own text in a copy of the package."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

import clfuse
from clfuse.interop.scipy_ufuncs import NAMES
from tests.support.changed_copy import TOP, copy_package, run_with

pytestmark = pytest.mark.clfuse_only

PAGE = TOP / "clfuse" / "guide" / "contributing" / "adding.md"
BLOCK = re.compile(r"(?ms)^ *```python\n *# (clfuse/\S+\.py)\n(.*?)^ *```$")
OF_NAMES = re.compile(r"(?m)^NAMES: Final = .*$")

PROGRAM = """
import numpy
import clfuse as np
from scipy.special import expit
from clfuse.tools.check.functions import FUNCTIONS

print(sorted(each.label for each in FUNCTIONS if each.name == "expit"))
before = np.stats()["fallbacks"]
points = [0.0, -0.0, 1.0, -1.0, -30.0, 50.0, numpy.inf, -numpy.inf, numpy.nan]
for dtype in (numpy.float32, numpy.float64):
    x = np.asarray(numpy.array(points * 8, dtype))
    y = 2 * expit(x)
    launches = [(kernel.kind, kernel.name) for kernel in np.explain(y).kernels]
    print(launches, y.dtype, (y / 2)[:9].tolist())
    total = expit(x.reshape(8, 9)[:, :8]).sum(axis=1)
    print(len(np.explain(total).kernels), numpy.ptp(np.asnumpy(total)))
print(np.stats()["fallbacks"] - before)
"""


def steps() -> dict[str, str]:
    """File -> the code that the page's recipe has for it."""
    return {file: textwrap.dedent(code) for file, code in BLOCK.findall(PAGE.read_text("utf-8"))}


def test_the_recipe_has_two_steps_and_lists_the_present_names() -> None:
    found = steps()
    assert set(found) == {"clfuse/ops/internal.py", "clfuse/interop/scipy_ufuncs.py"}
    named = set(re.findall(r'"(\w+)"', found["clfuse/interop/scipy_ufuncs.py"]))
    assert named == NAMES | {"expit"}


def test_a_ufunc_added_by_the_recipe_is_fused_and_right(tmp_path: Path) -> None:
    special = pytest.importorskip("scipy.special")
    before = clfuse.stats()["fallbacks"]
    special.expit(clfuse.zeros(3))
    assert clfuse.stats()["fallbacks"] == before + 1  # it is not there yet

    copy_package(tmp_path)
    row, names = (steps()[f"clfuse/{file}.py"] for file in ("ops/internal", "interop/scipy_ufuncs"))
    table = tmp_path / "clfuse" / "ops" / "internal.py"
    text = table.read_text("utf-8")
    assert text.endswith("\n)\n")  # of ROWS
    table.write_text(text.removesuffix(")\n") + textwrap.indent(row, "    ") + ")\n", "utf-8")
    listed = tmp_path / "clfuse" / "interop" / "scipy_ufuncs.py"
    text, count = OF_NAMES.subn(names.strip(), listed.read_text("utf-8"))
    assert count == 1
    listed.write_text(text, "utf-8")

    done = run_with(tmp_path, "-c", PROGRAM, CLFUSE_HOST_US="0", CLFUSE_BUILD_AFTER_MS="0")
    functions, one, sums_of_one, two, sums_of_two, fallbacks = done.stdout.splitlines()
    assert functions == "['expit(float32)', 'expit(float64)']"
    assert fallbacks == "0"
    for line, dtype, digits in ((one, "float32", 6), (two, "float64", 14)):
        launches, kind, values = re.fullmatch(r"(\[.*?\]) (\w+) (\[.*\])", line).groups()
        assert launches == "[('map', 'map_expit_multiply')]"
        assert kind == dtype
        expected = [0.5, 0.5, 0.7310585786300049, 0.2689414213699951, 9.357622968839299e-14, 1.0,
                    1.0, 0.0]
        numbers = [float(value) for value in values[1:-1].split(", ")]
        assert numbers[8] != numbers[8]
        assert numbers[:8] == pytest.approx(expected, rel=10.0**-digits, abs=0)
    assert sums_of_one == sums_of_two == "1 0.0"
