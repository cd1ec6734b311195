"""Kernels are built in the background, and NumPy calculates meanwhile."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
from numpy.testing import assert_allclose

from clfuse.engine import background, executable, plans
from clfuse.engine.evaluate import forget_plans
from clfuse.interpreter import interpret
from clfuse.policy import allowance, feedback, tiering, warm_start
from tests.device.policy.test_small_programs import counted
from tests.support.marks import compiled

pytestmark = [pytest.mark.clfuse_only, pytest.mark.usefixtures("shared_memory")]

SIZE = 200_001


AS_EVER = tiering.SPECULATED


@pytest.fixture(autouse=True)
def first_run(xp: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What is not small has kernels made when it comes for the first time."""
    monkeypatch.setattr(tiering, "SPECULATED", 1_000_000)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    xp.evaluate(xp.zeros(3))
    forget_plans()
    warm_start.forget()
    with xp.config.override(host_us=50, background="on"):
        yield
    background.finish()
    forget_plans()


class Compiler:
    """Stands for what builds: waits until it may, and counts the calls of other threads."""

    def __init__(self, plain: Callable[..., Any]) -> None:
        self.plain = plain
        self.may_build = threading.Event()
        self.behind: list[str] = []
        self.here = 0
        self.fails_behind = False

    def __call__(self, part: Any, device: Any) -> Any:
        if threading.current_thread() is threading.main_thread():
            self.here += 1
            return self.plain(part, device)
        assert self.may_build.wait(60)
        self.behind.append(threading.current_thread().name)
        if self.fails_behind:
            raise RuntimeError("no room for the compiler")
        return self.plain(part, device)


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch) -> Iterator[Compiler]:
    made = Compiler(executable.program_of)
    monkeypatch.setattr(executable, "program_of", made)
    yield made
    made.may_build.set()
    background.finish()


def expression(xp: Any, x: Any, factor: float) -> Any:
    return xp.sqrt(x * factor) - x[::-1] / (x + factor)


def evaluated(xp: ModuleType, factor: float = 1.5, size: int = SIZE) -> tuple[bool, bool]:
    """Whether NumPy computed it, and whether kernels did; the value is right."""
    x = np.arange(float(size))
    found, host, kernels = counted(xp, expression(xp, xp.asarray(x), factor).get)
    assert_allclose(found, expression(np, x, factor), rtol=1e-13, atol=1e-13)
    return bool(host), bool(kernels)


def test_numpy_calculates_until_the_kernels_are_there(xp: ModuleType, compiler: Compiler) -> None:
    for _ in range(4):
        assert evaluated(xp) == (True, False)
    compiler.may_build.set()
    background.finish()
    assert compiler.behind == ["clfuse builds"]
    for factor in (1.5, 2.5):
        assert evaluated(xp, factor) == (False, True)
    assert len(compiler.behind) == 1
    assert not any(thread.name == "clfuse builds" for thread in threading.enumerate())


def test_the_compiler_does_not_run_beside_large_products(
    xp: ModuleType, compiler: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whose threads are on all cores: it begins when NumPy is done."""
    events = []
    plain_run, plain_begin = interpret.run, plans.begin
    monkeypatch.setattr(
        interpret, "run", lambda *given, **more: (events.append("numpy"), plain_run(*given, **more))
    )
    monkeypatch.setattr(
        plans, "begin", lambda *given: (events.append("compiler"), plain_begin(*given))[1]
    )
    x, m = np.arange(float(SIZE)), np.eye(200)
    for factor in (1.5, 2.5):
        found = expression(xp, xp.asarray(x), factor) + (xp.asarray(m) @ m).sum()
        assert_allclose(found.get(), expression(np, x, factor) + 200.0, rtol=1e-13, atol=1e-13)
        compiler.may_build.set()
        background.finish()
    assert events == ["numpy", "compiler"]
    events.clear()
    forget_plans()
    assert evaluated(xp) == (True, False)
    assert events == ["compiler", "numpy"]


def test_plans_made_behind_count_once(xp: ModuleType, compiler: Compiler) -> None:
    """Otherwise a program that comes back to all its plans would not be believed to."""
    before = tiering._once[0]
    for _ in range(2):
        evaluated(xp)
    compiler.may_build.set()
    background.finish()
    evaluated(xp)
    assert tiering._once[0] == before + 1
    evaluated(xp)
    assert tiering._once[0] == before


def test_short_evaluations_ask_for_kernels_when_they_return(
    xp: ModuleType, compiler: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiering, "SPECULATED", AS_EVER)
    before = xp.stats()["plans_made"]
    made = []
    for factor in (1.5, 2.5, 3.5):
        assert evaluated(xp, factor) == (True, False)
        made.append(xp.stats()["plans_made"] - before)
    assert made == [0, 1, 1]


def test_what_takes_as_long_as_the_compiler_waits_for_it(
    xp: ModuleType, compiler: Compiler
) -> None:
    device = xp.get_device()
    for milliseconds, expected in ((1e3, (True, False)), (10, (False, True))):
        costs = replace(device.traits.costs, program_ns=milliseconds * 1e6)
        forget_plans()
        with device.trying(replace(device.traits, costs=costs)):
            assert evaluated(xp, size=10_000_001) == expected
        compiler.may_build.set()
        background.finish()


@compiled
def test_numpy_works_at_the_call_while_kernels_are_built(
    xp: ModuleType, compiler: Compiler
) -> None:
    """Nothing is recorded to be interpreted, until the thread is done; others' kernels do not
    matter as long as none is launched."""
    x = np.arange(float(SIZE))
    expected = [x]
    for _ in range(6):
        expected.append(expression(np, expected[-1], 1.5))
    feedback.of_kernels.update([float(SIZE), 4.0 * SIZE])
    array = xp.array(x)
    recorded = []
    for number in range(1, 6):
        before = xp.stats()["nodes_recorded"]
        array = expression(xp, array, 1.5)
        xp.evaluate(array)
        recorded.append(xp.stats()["nodes_recorded"] - before)
        assert_allclose(array.get(), expected[number], rtol=1e-13, atol=1e-13)
    assert recorded[0] > 0
    assert recorded[2:] == [0, 0, 0]
    compiler.may_build.set()
    background.finish()
    array = expression(xp, array, 1.5)
    _, host, kernels = counted(xp, lambda: xp.evaluate(array))
    assert (host, kernels) == (0, 1)
    assert_allclose(array.get(), expected[6], rtol=1e-13, atol=1e-13)


@compiled
def test_kernels_that_are_there_at_once_lend_nothing(
    xp: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread may be done before NumPy has computed the first time."""
    plain = interpret.run

    def slow(*arguments: Any, **options: Any) -> None:
        plain(*arguments, **options)
        background.finish()

    monkeypatch.setattr(interpret, "run", slow)
    assert evaluated(xp) == (True, False)
    assert not allowance.is_given()
    assert evaluated(xp) == (False, True)


def test_what_takes_numpy_longer_than_a_build_waits_for_kernels(
    xp: ModuleType, compiler: Compiler
) -> None:
    with xp.config.override(build_after_ms=1):
        assert evaluated(xp, size=2_000_001) == (False, True)
    assert compiler.behind == []


def test_who_asks_for_kernels_waits_for_them(xp: ModuleType, compiler: Compiler) -> None:
    x = np.arange(float(SIZE))
    assert evaluated(xp) == (True, False)
    array = expression(xp, xp.asarray(x), 1.5)
    assert "NumPy calculates it until" in str(xp.explain(array))
    threading.Timer(0.2, compiler.may_build.set).start()
    assert counted(xp, lambda: xp.evaluate(array, build=True))[1:] == (0, 1)
    assert_allclose(array.get(), expression(np, x, 1.5), rtol=1e-13, atol=1e-13)
    array = expression(xp, xp.asarray(x), 1.5)
    assert "NumPy calculates it" not in str(xp.explain(array))
    assert evaluated(xp) == (False, True)


def test_what_is_not_for_numpy_is_not_its_meanwhile(xp: ModuleType, compiler: Compiler) -> None:
    assert evaluated(xp) == (True, False)
    compiler.may_build.set()
    with xp.config.override(host_us=0):
        assert evaluated(xp) == (False, True)


def test_without_the_background_kernels_are_waited_for(xp: ModuleType, compiler: Compiler) -> None:
    with xp.config.override(background="off"):
        assert evaluated(xp) == (False, True)
    assert compiler.behind == []


def test_what_fails_behind_is_built_by_who_needs_it(xp: ModuleType, compiler: Compiler) -> None:
    compiler.fails_behind = True
    assert evaluated(xp) == (True, False)
    compiler.may_build.set()
    background.finish()
    assert evaluated(xp) == (False, True)
    assert (len(compiler.behind), compiler.here) == (1, 1)


def test_kernels_are_of_the_settings_at_their_use(xp: ModuleType, compiler: Compiler) -> None:
    """The thread builds what was asked for at another moment than a setting changes."""
    assert evaluated(xp) == (True, False)
    with xp.config.override(fp="fast"):
        compiler.may_build.set()
        background.finish()
    assert evaluated(xp) == (False, True)
    (planned,) = plans.kept.values()
    for step in planned.steps:
        built = step.program
        handle = built.device.inline.handle if built.inline else built.device.handle
        options = built.compiled.get_build_info(handle, cl.program_build_info.OPTIONS)
        assert "fast" not in options


def test_a_jit_function_takes_its_kernels_at_once(xp: ModuleType, compiler: Compiler) -> None:
    x = np.arange(float(SIZE))
    found = xp.jit(lambda x: expression(xp, x, 1.5))(xp.asarray(x))
    assert_allclose(np.asarray(found), expression(np, x, 1.5), rtol=1e-13, atol=1e-13)
    assert compiler.behind == []


def test_writes_in_place_are_done_once_while_kernels_are_built(
    xp: ModuleType, compiler: Compiler
) -> None:
    x, y = xp.zeros(SIZE), np.zeros(SIZE)
    for turn in range(12):
        if turn == 8:
            compiler.may_build.set()
            background.finish()
        for module, array in ((xp, x), (np, y)):
            array += 1
            array[1:-1] = (array[2:] + array[:-2]) * 0.5 + module.sqrt(array[1:-1])
        xp.evaluate(x)
        assert_allclose(np.asarray(x), y, rtol=1e-12)
    assert compiler.behind


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a platform that forks")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_waits_for_the_compiler(xp: ModuleType, compiler: Compiler) -> None:
    assert evaluated(xp) == (True, False)
    threading.Timer(0.2, compiler.may_build.set).start()
    child = os.fork()
    if not child:
        status = 1
        try:
            status = int(not compiler.behind or not evaluated(xp)[0])
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert compiler.behind


SCRIPT = """
import numpy, clfuse as np
x = np.asarray(numpy.arange(200_001.0))
for turn in range({turns}):
    found = float((np.sqrt(x * {factor}) - x[::-1] / (x + 2)).sum())
expected = (numpy.sqrt(numpy.arange(200_001.0) * {factor}) - numpy.arange(200_001.0)[::-1]
            / (numpy.arange(200_001.0) + 2)).sum()
assert abs(found / expected - 1) < 1e-12, (found, expected)
counts = np.stats()
print(counts["host_evaluations"] > 0)
"""


IMPORTS = """
import json, sys, threading
import numpy as np
import clfuse

class Watch:
    def find_spec(self, name, path=None, target=None):
        if name in ("clfuse.runtime.drivers.opencl", "clfuse.engine.executable"):
            met[name] = threading.current_thread().name

met = {}
sys.meta_path.insert(0, Watch())
x = np.linspace(0.0, 1.0, 300_000)
y, expected = clfuse.asarray(x), x
rounds = 0
while not clfuse.stats()["kernels_launched"] and rounds < 5000:
    y = clfuse.sqrt(y * y + 1.5) / (y + 2)
    expected = np.sqrt(expected * expected + 1.5) / (expected + 2)
    y = clfuse.sqrt(y * y + 0.5) * (y - 2)
    expected = np.sqrt(expected * expected + 0.5) * (expected - 2)
    assert np.allclose(y, expected, rtol=1e-12)
    rounds += 1
assert rounds < 5000
print(json.dumps(met))
"""


def test_what_plans_is_imported_in_the_background(xp: ModuleType, tmp_path: Path) -> None:
    """In a process that has no device yet, on a loop that earns its kernels."""
    environment = {
        **os.environ, "CLFUSE_BACKGROUND": "on", "CLFUSE_BUILD_AFTER_MS": "20",
        "CLFUSE_HOST_US": "50", "XDG_CACHE_HOME": str(tmp_path),
    }
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", IMPORTS], env=environment, capture_output=True,
        text=True, timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "clfuse.engine.executable": "clfuse builds",
        "clfuse.runtime.drivers.opencl": "clfuse builds",
    }


@pytest.mark.parametrize("turns", [1, 2, 4])
def test_a_process_that_ends_meanwhile_ends_well(turns: int, tmp_path: Path) -> None:
    variables = {**os.environ, "CLFUSE_HOST_US": "50", "CLFUSE_BACKGROUND": "on",
                 "POCL_CACHE_DIR": str(tmp_path / "pocl"), "XDG_CACHE_HOME": str(tmp_path)}
    script = SCRIPT.format(turns=turns, factor=1 + turns / 8)
    done = subprocess.run([sys.executable, "-c", script], env=variables, capture_output=True,
                          text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")
