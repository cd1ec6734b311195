"""Type checkers and editors know the names of clfuse, and refuse what is none."""

from __future__ import annotations

import ast
import importlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import clfuse
from clfuse.namespace import SUBMODULES
from tests import stubs

REPOSITORY = Path(__file__).parents[2]

PROGRAM = """
import clfuse
import clfuse as np
import clfuse.linalg as la
from clfuse.lib.stride_tricks import sliding_window_view
from clfuse.random import default_rng

x = np.linspace(0, 1, 5)
reveal_type(x)  # numpy.ndarray[
reveal_type(np.zeros((2, 3), np.float32).dtype)  # numpy.dtype[numpy.float
reveal_type(default_rng(3).random(5).dtype)  # numpy.dtype[numpy.float
y = np.where(x > 0.5, np.sin(x), 0.0)
y[1:] += sliding_window_view(x, 2).sum(axis=1)
length = float(la.norm(y))
reveal_type(clfuse.stats())  # dict[str, int]
reveal_type(np.asnumpy(x))  # Any
with clfuse.profile(), clfuse.device("cpu"), np.errstate(all="ignore"):
    clfuse.evaluate(x, y, wait=False)
np.sine(x)  # error: Module has no attribute "sine"
np.linspace("0", 1)  # error: No overload variant of "linspace"
np.linalg.norms(x)  # error: Module has no attribute "norms"
clfuse.evaluate(x, waits=False)  # error: Unexpected keyword argument "waits"
"""
"""With what a type checker says of some lines, whichever release of NumPy's stubs it reads."""


def names(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imported = [alias for node in tree.body if isinstance(node, ast.ImportFrom)
                for alias in node.names]  # fmt: skip
    return {alias.asname for alias in imported if alias.asname}


def is_of_this_release() -> bool:
    """Whether the stubs list the names of the NumPy that is installed."""
    first = (stubs.PACKAGE / "__init__.pyi").read_text(encoding="utf-8").splitlines()[0]
    return first.endswith(f" {stubs.RELEASE}.")


def test_the_stubs_are_what_the_names_make() -> None:
    if is_of_this_release():
        for path, text in stubs.stubs().items():
            assert path.read_text(encoding="utf-8") == text, "run: python -m tests.stubs"


def test_the_stub_has_every_name_of_dir() -> None:
    ours = names(stubs.PACKAGE / "__init__.pyi")
    numpys = set(stubs.numpys_names("numpy"))
    public = {name for name in dir(clfuse) if not name.startswith("_")}
    left_out = set(dir(np)) - numpys  # of NumPy's own stubs: of 2.0 trapz, in1d and four more
    assert public - left_out <= ours | numpys
    beyond = set(stubs.own_imports()) & ours
    assert beyond >= public - left_out - numpys
    assert {name for name in beyond if not hasattr(clfuse, name)} == set()


def test_the_stubs_of_submodules_have_their_names() -> None:
    for name, module in SUBMODULES.items():
        # Some of NumPy's stubs name more than there is.
        numpys = set(dir(importlib.import_module(f"numpy.{name}")))
        listed = set(stubs.numpys_names(f"numpy.{name}")) & numpys
        assert {each for each in listed if not hasattr(module, each)} <= {"test", "Tester"}, name


def test_dir_has_numpys_names_and_ours_only() -> None:
    ours = {name for name in dir(clfuse) if not name.startswith("_")} - set(dir(np))
    assert ours == set(clfuse.__all__) - set(dir(np))
    assert {"evaluate", "kernel", "stats"} <= ours
    assert ours.isdisjoint({"TYPE_CHECKING", "Any", "policy", "engine", "annotations", "importlib"})


def test_mypy_knows_types_and_refuses_what_is_no_name(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    finished = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file=", "--follow-imports=silent",
         "--no-error-summary", "--cache-dir", str(tmp_path / "cache"), "program.py"],
        cwd=tmp_path, capture_output=True, text=True, timeout=600,
        env={**os.environ, "MYPYPATH": str(REPOSITORY)},
    )  # fmt: skip
    found = {}
    for line in finished.stdout.splitlines():
        file, number, rest = line.split(":", 2)
        if file == "program.py" and "note: " in rest and "Revealed" not in rest:
            continue  # which overloads there are
        if file != "program.py" and not is_of_this_release():
            continue  # names that this NumPy has not, which are not looked at where it is installed
        assert file == "program.py", finished.stdout
        found[int(number)] = rest.replace("numpy._typing._nbit_base.", "")
    for number, line in enumerate(PROGRAM.splitlines(), 1):
        _, hash_, expected = line.partition("  # ")
        assert bool(hash_) == (number in found), finished.stdout
        assert expected in found.get(number, ""), (line, found[number])


@pytest.mark.parametrize(("source", "expected"), [
    ("import clfuse as np\nnp.linsp", "linspace"),
    ("import clfuse as np\nx = np.linspace(0, 1, 5)\nx.mea", "mean"),
    ("import clfuse as np\nnp.random.default_r", "default_rng"),
    ("import clfuse as np\nnp.evalu", "evaluate"),
    ("import clfuse.linalg as la\nla.nor", "norm"),
])
def test_jedi_completes_names(source: str, expected: str) -> None:
    found = completed(source)
    if not found and "x." in source and not completed(source.replace("clfuse", "numpy")):
        pytest.skip("Jedi knows nothing of what the functions of this NumPy return")
    assert found == [expected]


def completed(source: str) -> list[str]:
    """What Jedi offers at the end of a program."""
    jedi = pytest.importorskip("jedi")
    lines = source.splitlines()
    project = jedi.Project(REPOSITORY)
    script = jedi.Script(source, path=REPOSITORY / "program.py", project=project)
    return [each.name for each in script.complete(len(lines), len(lines[-1]))]
