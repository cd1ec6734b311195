"""pytest plug-in under which NumPy's own tests test clfuse; `tests.numpy_suite` starts pytest so.

``import numpy`` in the test modules gives clfuse, as ``python -m clfuse run`` does it. They also
take names from NumPy's private modules (``numpy._core.umath``): those that clfuse answers for are
replaced, there and in the module's globals once it is imported. Outcomes go to a journal, line by
line; what is in it already is not run again, and a test that began and has no outcome killed its
process.

``CLFUSE_SUITE_MODULE=numpy`` runs the same tests on NumPy, to know which pass on this machine at
all.
"""

from __future__ import annotations

import os
import signal
import sys
import time
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from .journal import read_journal, write_journal

MODULE = os.environ.get("CLFUSE_SUITE_MODULE", "clfuse")
JOURNAL = Path(os.environ["CLFUSE_SUITE_JOURNAL"])
TEST_S = int(os.environ.get("CLFUSE_SUITE_TEST_S", "30"))
BUDGET_S = float(os.environ.get("CLFUSE_SUITE_BUDGET_S", "inf"))
OUT_OF_TIME = 75  # exit status: there are tests left to run
MESSAGE_CHARACTERS = 2000
PRIVATE = (
    "_core",
    "_core.umath",
    "_core.numeric",
    "_core.fromnumeric",
    "_core.multiarray",
    "_core._multiarray_umath",
)

_start = time.monotonic()


# -- clfuse in NumPy's place ----------------------------------------------------------------------


def _substitute() -> None:
    import clfuse
    from clfuse.tools.substitution import Substitution

    clfuse.get_device()
    root = os.path.dirname(np.__file__)
    Substitution(
        [
            os.path.join(root, *part.split("."), "tests")
            for part in (
                "_core",
                "lib",
                "linalg",
                "fft",
                "random",
                "ma",
                "matrixlib",
                "polynomial",
            )
        ]
    ).install()
    for name in PRIVATE:
        _shadow(clfuse, name)


def _shadow(parent: Any, name: str) -> None:
    """Put a copy of NumPy's private module below `parent`, with our functions in it."""
    reference: Any = np
    *path, last = name.split(".")
    for step in path:
        parent, reference = getattr(parent, step), getattr(reference, step)
    reference = getattr(reference, last)
    names = {key: _ours(value) for key, value in vars(reference).items() if key != "__getattr__"}
    own = sys.modules.get(f"clfuse.{name}")
    if own is not None:  # a package of clfuse's with that name
        vars(own).update({key: value for key, value in names.items() if key not in vars(own)})
        return
    made = types.ModuleType(reference.__name__, reference.__doc__)
    made.__dict__.update(names)
    made.__dict__["__getattr__"] = lambda key: getattr(reference, key)
    made.__path__ = []
    setattr(parent, last, made)
    # Whoever imports it by name would put NumPy's in its place.
    sys.modules[f"clfuse.{name}"] = made


def _ours(value: Any) -> Any:
    from clfuse.dispatch.registry import BY_NUMPY, NATIVE
    from clfuse.functions.testing import seen_on_the_host

    if isinstance(value, np.ufunc):
        return BY_NUMPY.get(value, value)
    if isinstance(value, types.FunctionType | types.BuiltinFunctionType | type(np.concatenate)):
        if value.__module__ == "numpy.ma.testutils" and value.__name__.startswith("assert_"):
            return seen_on_the_host(value)
        return NATIVE.get(value, value)
    return value


def _substitute_in(module: types.ModuleType) -> None:
    for key, value in list(vars(module).items()):
        if key == "np":
            continue
        ours = _ours(value)
        if ours is not value:
            setattr(module, key, ours)


# -- hooks ----------------------------------------------------------------------------------------


def pytest_configure() -> None:
    if MODULE == "clfuse":
        _substitute()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    known = read_journal(JOURNAL)
    for test, (outcome, message) in known.items():
        if outcome == "crash":
            write_journal(JOURNAL, test, "crash", message)
    if MODULE == "clfuse":
        for module in {item.module for item in items}:  # type: ignore[attr-defined]
            if getattr(module, "np", None) is np:
                raise pytest.UsageError(f"{module.__name__} would test NumPy itself")
            _substitute_in(module)
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in known])
    items[:] = [item for item in items if item.nodeid not in known]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    if time.monotonic() - _start > BUDGET_S:
        pytest.exit("out of time", returncode=OUT_OF_TIME)
    write_journal(JOURNAL, item.nodeid, "began")
    return (yield)  # type: ignore[misc]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    def late(*_: Any) -> None:
        raise TimeoutError(f"{item.nodeid} took more than {TEST_S} s")

    signal.signal(signal.SIGALRM, late)
    signal.alarm(TEST_S)
    try:
        return (yield)  # type: ignore[misc]
    finally:
        signal.alarm(0)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when != "call" and report.outcome == "passed":
        return
    outcome = "xfailed" if hasattr(report, "wasxfail") else report.outcome
    write_journal(
        JOURNAL,
        report.nodeid,
        outcome,
        str(report.longrepr)[-MESSAGE_CHARACTERS:] if report.failed else "",
    )
