"""What a program imports: little for small arrays, and no OpenCL, which needs time and a driver.

Modules are counted, not seconds. Every program runs in a process of its own, where no driver is
found: what would look for a device fails.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from clfuse._core import loading

REPOSITORY = Path(__file__).parents[2]

MOST_MODULES = 194
"""Of ours, 31 packages among them: 194 were counted."""

MOST_OF_NUMPYS = 8
"""Of NumPy's beyond what ``import numpy`` brings, and what Cython makes: 6 were counted, and 7
beside NumPy 2.0."""

MOST_OF_PYTHONS = 36
"""Of Python's: 12 to 22 were counted, and 31 beside NumPy 2.0 on Python 3.10, which brings fewer by
itself; that depends on the releases and on how all is installed.
There had been 298 in all."""

HEAVY = ("pyopencl", "mako", "numpy.random", "numpy.testing", "clfuse.schedule", "clfuse.codegen",
         "clfuse.user_kernels.language", "clfuse.engine.replay", "clfuse.tracing.jit",
         "clfuse.user_kernels.opencl.raw")

SMALL = """
x = np.arange(10.0)
y = np.array([1.0, 2.0, 3.0])
z = x * 2 + 1
w = np.zeros((3, 3))
w[1] = y
w[w > 2] -= 1
shown = str((z.sum(), z.mean(), x[3], x[2:5], w @ y, w.T, np.sqrt(w).max(), repr(w[:, 1])))
np.linspace(0, 1, 5).tolist(), np.concatenate([x, z]).std(), np.where(z > 3, x, z).astype(int)
np.evaluate(z)
np.synchronize()
"""


def run(tmp_path: Path, program: str, **variables: str) -> str:
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith("CLFUSE_")
    }
    environment |= {"OCL_ICD_VENDORS": str(tmp_path), "CLFUSE_VENDORS": "system", **variables}
    finished = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


def imported(tmp_path: Path, program: str, **variables: str) -> set[str]:
    """What a program imports beyond NumPy."""
    text = f"import sys, numpy\nbefore = set(sys.modules)\n{program}\n"
    text += "print(*sorted(set(sys.modules) - before))"
    return set(run(tmp_path, text, **variables).split())


def heavy(modules: set[str]) -> set[str]:
    return {name for name in modules if name.startswith(HEAVY)} - {"clfuse.random"}


def test_the_import_brings_no_opencl_template_or_planner(tmp_path: Path) -> None:
    found = imported(tmp_path, "import clfuse")
    assert "clfuse.classes.ndarray" in found
    assert not heavy(found)
    pythons = {name for name in found if name.partition(".")[0] in sys.stdlib_module_names}
    ours = {name for name in found if name.partition(".")[0] == "clfuse"}
    assert len(ours) <= MOST_MODULES
    assert len(found - ours - pythons) <= MOST_OF_NUMPYS
    assert len(pythons) <= MOST_OF_PYTHONS


def test_small_arrays_need_no_device_and_no_more_modules(tmp_path: Path) -> None:
    before = imported(tmp_path, "import clfuse as np")
    found = imported(tmp_path, "import clfuse as np" + SMALL)
    assert not heavy(found)
    assert len(found - before) <= 5


def test_what_numpy_does_on_the_host_needs_no_device(tmp_path: Path) -> None:
    found = imported(tmp_path, """
import clfuse as np
words = np.full((3, 3), " ")
words[1, 1] = "x"
dates = np.datetime64("2020-01-01") + np.arange(3)
np.random.seed(3)
state = np.arange(2000) % 3
state[state == 1] = 2
state[np.random.permutation(2000)[:5]] += 1
chosen = np.random.choice(3, 100, p=[0.5, 0.25, 0.25])
cloud = np.random.multivariate_normal([0, 0], np.eye(2), 9)
np.histogram(state, bins=32, range=(0, 256))
shown = str((words, dates, state.sum(), chosen, cloud))
""")
    assert not {name for name in found if name.startswith("pyopencl")}


@pytest.mark.skipif(not loading.load(), reason="plain Python leaves large permutations to kernels")
def test_recording_looks_for_no_device(tmp_path: Path) -> None:
    """How operations are recorded depends on the device; where it can only be a processor, nobody
    waits for half a second to be told."""
    (tmp_path / "some.icd").write_text("libpocl.so.2\n")
    found = imported(tmp_path, """
import numpy, clfuse as np
from clfuse.runtime.devices.selection import current_device
assert current_device().may_wait
values = numpy.random.default_rng(0).random(200_000)
x, i = np.asarray(values), np.asarray((values * 9).astype(int))
made = [
    x[x > 0.5], np.repeat(x, i), np.bincount(i), np.bincount(i, x), np.histogram2d(x, x, 5)[0],
    np.add.reduceat(x, [0, 5, 9]), np.fft.fft(x), np.fft.rfft2(x.reshape(400, 500)), np.i0(x),
    np.piecewise(x, [x < 0.5], [0.0, np.negative]), np.random.permutation(200_000),
    np.random.choice(200_000, 100_000, replace=False), np.sort(x), np.divide.accumulate(x + 1),
    np.searchsorted(np.sort(x), [0.5, 0.7]), np.unique(i, return_counts=True)[1],
    np.linalg.inv(np.eye(600) * 2),
]
for write in (
    lambda y: np.place(y, y > 0.5, [1.0, 2.0]), lambda y: np.put(y, i, 2.0),
    lambda y: np.putmask(y, y > 0.5, [1.0, 2.0]), lambda y: np.add.at(y, i, 1.0),
    lambda y: y.__setitem__(y > 0.5, 1.0), lambda y: y.__setitem__(i, x),
    lambda y: [np.zeros((400, 500)).__setitem__(row, y[:500]) for row in range(3)],
):
    made.append(x * 1)
    write(made[-1])
shown = [numpy.asarray(array).sum() for array in made]
""", CLFUSE_BUILD_AFTER_MS="1000000")
    assert not {name for name in found if name.startswith("pyopencl")}


def test_no_round_waits_for_a_device_that_is_being_opened(tmp_path: Path) -> None:
    (tmp_path / "some.icd").write_text("libpocl.so.2\n")
    run(tmp_path, """
import threading, numpy, clfuse as np
from clfuse.runtime.devices import selection

settle, asked, may_open = selection._settle, threading.Event(), threading.Event()

def open_at_last(device):
    assert threading.current_thread() is not threading.main_thread(), "a round would have waited"
    asked.set()
    may_open.wait()
    settle(device)

selection._settle = open_at_last
x = y = np.asarray(numpy.random.default_rng(0).random(1_000_000))
rounds = 0
try:
    while rounds < 100:
        r = x - 0.1 * y
        x = r / (1 + np.sqrt(r @ r)) + y
        float(x[7])
        rounds += asked.is_set()
finally:
    may_open.set()
""", CLFUSE_BACKGROUND="on")


@pytest.mark.skipif(not loading.load(), reason="the compiled part draws small arrays")
def test_small_draws_need_no_device(tmp_path: Path) -> None:
    found = imported(tmp_path, """
import clfuse as np
rng = np.random.default_rng(3)
drawn = [rng.normal(size=(3, 2)), rng.random(1000), rng.integers(0, 9, 50), rng.normal(2, 3)]
drawn += [np.random.randn(4000), np.random.rand(), np.random.choice([-1, 1]), rng.exponential(2, 5)]
noise = rng.standard_normal(20_000).std()
shown = str(drawn) + str(noise)
""")
    assert not {name for name in found if name.startswith("pyopencl")}


def test_python_m_clfuse_run_brings_no_more_than_the_import(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(f"import numpy as np{SMALL}\nimport sys; print(*sorted(sys.modules))\n")
    program = f"from clfuse.__main__ import main; main(['run', {str(script)!r}])"
    assert not heavy(set(run(tmp_path, program).split()))


@pytest.mark.parametrize("name", ["jit", "kernel", "RawKernel", "random", "testing", "explain"])
def test_what_comes_later_is_listed_and_found_in_every_way(tmp_path: Path, name: str) -> None:
    program = f"""
import clfuse
assert {name!r} in dir(clfuse)
first = clfuse.{name}
from clfuse import {name} as second
names = {{}}
exec("from clfuse import *", names)
assert first is second is names.get({name!r}, first)
assert {name!r} in names or {name!r} in ("random", "testing")
"""
    run(tmp_path, program)


def test_functions_keep_their_names_when_their_module_loads(tmp_path: Path) -> None:
    run(tmp_path, """
import clfuse
from clfuse.engine import executable, explain, profile, replay
from clfuse.engine import evaluate
assert callable(clfuse.explain) and callable(clfuse.profile) and callable(clfuse.evaluate)
""")


def test_a_missing_device_is_an_error_when_it_is_needed(tmp_path: Path) -> None:
    run(tmp_path, f"""
import clfuse as np{SMALL}
for _ in range(2):
    try:
        np.get_device()
    except np.DeviceError as error:
        assert "install" in str(error)
    else:
        raise AssertionError
assert (z + 1).tolist() == [2.0 * i + 2 for i in range(10)]
try:
    np.arange(1e7).sum().get()
except np.DeviceError:
    pass
else:
    raise AssertionError
""", CLFUSE_BUILD_AFTER_MS="0")


def test_double_precision_is_asked_of_the_device_if_replaced(tmp_path: Path) -> None:
    run(tmp_path, """
import clfuse as np
try:
    np.ones(3)
except np.DeviceError:
    pass
else:
    raise AssertionError("CLFUSE_FP64=downcast depends on the device")
""", CLFUSE_FP64="downcast")
