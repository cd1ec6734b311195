"""Fixtures and rules that every test shares; pytest reads it.

``xp`` is the module under test: clfuse, or whatever ``CLFUSE_TEST_MODULE`` names.
``CLFUSE_TEST_MODULE=numpy`` runs the differential tests with NumPy against itself, which proves
that the tests ask nothing that NumPy does not do. Tests of clfuse's own names carry the mark
``clfuse_only`` and are left out then. Without a usable device the device tests fail in CI (the
variable ``CI`` is set, or ``CLFUSE_TEST_DEVICE=required``) and are skipped elsewhere.
"""

from __future__ import annotations

import gc
import importlib
import os
import re
import sys
import warnings
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

# `from tests.support.hostile import ...` works whichever folder pytest was started from.
sys.path.insert(0, str(Path(__file__).parent.parent))
# Child processes find what this one finds, also where nothing is installed and a variable said so.
os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(filter(None, sys.path)))

from tests.support.compiling import Compiling
from tests.support.double import Refusals
from tests.support.rounds import IS_LONG

# Arrays in tests are small: NumPy would calculate them (`clfuse.interpreter.interpret`), and test
# no kernel.
os.environ.setdefault("CLFUSE_HOST_US", "0")
# Who computes a round must not depend on how long a compiler takes.
os.environ.setdefault("CLFUSE_BACKGROUND", "off")
# What somebody has measured of this machine must not change what is tested.
os.environ.setdefault("CLFUSE_TUNING", "off")
# A device that has to copy says where NumPy takes its place, and warnings are errors here: tests of
# that ask for it (`setting(fallback=...)`), the others compare what comes out on any device.
os.environ.setdefault("CLFUSE_FALLBACK", "allow")

MODULE = os.environ.get("CLFUSE_TEST_MODULE", "clfuse")
ARITHMETIC_WARNINGS = ("Degrees of freedom", "Mean of empty", "invalid value", "divide by zero",
                       "overflow", "underflow")
DEVICE_TESTS = {Path(__file__).parent / name for name in ("device", "ecosystem")}


@pytest.hookimpl(trylast=True)  # pytest's own hook for what cannot be raised is there then
def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "clfuse_only: uses names that NumPy does not have")
    if MODULE == "clfuse":
        compiling = Compiling(os.environ.get("CLFUSE_TEST_OPTIMIZED", "all") != "some")
        config.pluginmanager.register(compiling)
        compiling.watch()
    sys.unraisablehook = partial(_unraisable, sys.unraisablehook)


def _unraisable(before: Callable[[Any], object], found: Any) -> None:
    """Under Python 3.12 garbage may be collected while NumPy makes one error of another one. The
    collector says then that the first was ignored; so it is with NumPy's own arrays."""
    is_collecting = (found.err_msg or "").startswith(
        ("Exception ignored in garbage collection", "Exception ignored in tp_clear of")
    )
    if not (is_collecting and "remapped shapes [original->remapped]" in str(found.exc_value)):
        before(found)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hand := os.environ.get("CLFUSE_TEST_HAND"):
        # "2/7": the third of seven hands that the tests are dealt to, the same ones on every run;
        # "2+4/7" has two. CLFUSE_TEST_WHOLE has patterns of modules that are in every hand, and
        # CLFUSE_TEST_MORE has a hand and the modules of which that one is taken in its place.
        whole = os.environ.get("CLFUSE_TEST_WHOLE", "").split()
        more, *larger = os.environ.get("CLFUSE_TEST_MORE", hand).split()
        others = [
            item
            for item in items
            if (
                not _is_in(item, more if _is_of(item, larger) else hand)
                and not _is_of(item, whole)
            )
            or _plans_for_a_cpu_on_a_gpu(item)
        ]
        left = set(others)
        items[:] = [item for item in items if item not in left]
        config.hook.pytest_deselected(items=others)
    if MODULE == "clfuse":
        return
    for item in items:
        if item.get_closest_marker("clfuse_only"):
            item.add_marker(pytest.mark.skip(reason=f"the module under test is {MODULE}"))


def pytest_collection_finish() -> None:
    """What the collection made stays to the end: the garbage collector need not look at it again.

    It is some thousand tests; looking at them was a twelfth of the processor time.
    """
    gc.collect()
    gc.freeze()


def _is_of(item: pytest.Item, modules: list[str]) -> bool:
    return any(fnmatch(item.path.stem, pattern) for pattern in modules)


def _is_in(item: pytest.Item, hand: str) -> bool:
    numbers, _, hands = hand.partition("/")
    dealt = zlib.crc32(_without_folders(item.nodeid).encode()) % int(hands)
    return dealt in map(int, numbers.split("+"))


def _without_folders(nodeid: str) -> str:
    """The name of a test whose file lies right in tests/device: moving files deals nothing anew."""
    return re.sub(r"^(tests/\w+)/(?:\w+/)+(?=test_\w+\.py)", r"\1/", nodeid)


def _plans_for_a_cpu_on_a_gpu(item: pytest.Item) -> bool:
    """Whether a test asks on a simulated device for a schedule that nobody has there, while its
    other case has the device's own: the runtimes of CPUs run both."""
    if IS_LONG or not os.environ.get("CLFUSE_SIMULATE"):
        return False
    case = getattr(item, "callspec", None)
    return case is not None and case.params.get("schedule") == "cpu"


refusals = Refusals()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    """A test that needs double precision is skipped on a device that has none."""
    refusals.begin()
    with _excused(item):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """The same of the test itself."""
    with _excused(item):
        return (yield)


@contextmanager
def _excused(item: pytest.Item) -> Iterator[None]:
    try:
        yield
    except (Exception, pytest.fail.Exception) as error:
        reason = refusals.reason(error, item)
        if reason is not None and not _has_double():
            pytest.skip(f"it needs double precision: {reason}")
        raise


def _has_double() -> bool:
    return bool(importlib.import_module("clfuse").get_device().traits.fp64)


def _device_is_required() -> bool:
    return bool(os.environ.get("CI")) or os.environ.get("CLFUSE_TEST_DEVICE") == "required"


@pytest.fixture(scope="session")
def device_problem() -> str | None:
    """Why no device can be used, or None."""
    if MODULE != "clfuse":
        return None
    clfuse = importlib.import_module("clfuse")
    try:
        clfuse.get_device()
    except clfuse.DeviceError as error:
        return str(error)
    return None


@pytest.fixture(autouse=True)
def needs_device(request: pytest.FixtureRequest) -> None:
    """A missing device fails in CI and skips elsewhere; tests outside those folders need none."""
    if DEVICE_TESTS.isdisjoint(request.path.parents):
        return
    problem = request.getfixturevalue("device_problem")
    if problem is not None and _device_is_required():
        pytest.fail(f"a device is required here: {problem}", pytrace=False)
    if problem is not None:
        pytest.skip(problem)


@pytest.fixture(scope="session")
def xp() -> ModuleType:
    """The module under test."""
    return importlib.import_module(MODULE)


@pytest.fixture(autouse=True)
def quiet_arithmetic() -> Iterator[None]:
    """Hostile values divide by zero on purpose; NumPy's warnings about it are not the subject."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        for message in ARITHMETIC_WARNINGS:
            warnings.filterwarnings("ignore", message, RuntimeWarning)
        warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
        yield


@pytest.fixture(autouse=True)
def nobody_asked_for_the_namespace() -> None:
    """Whoever asks an array for its namespace gets no scalars of NumPy's from then on."""
    present = sys.modules.get("clfuse.arrays.host_array")
    if present is not None:
        present.standard[0] = False


@pytest.fixture(autouse=True)
def leaves_nothing_behind() -> Iterator[None]:
    """Settings and the current device are after a test what they were before it."""
    before = _surroundings()
    yield
    after = _surroundings()
    left = {name: after[name] for name in before if after[name] != before[name]}
    assert not left, f"the test leaves behind: {left}"


def _surroundings() -> dict[str, object]:
    config = sys.modules.get("clfuse.config")
    devices = sys.modules.get("clfuse.runtime.devices.selection")
    found: dict[str, object] = {} if config is None else dict(vars(config.settings))
    if devices is not None:
        found["device of the context"] = devices._scoped.get()
        found["device of the process"] = devices._chosen
    return found


@pytest.fixture(autouse=True)
def trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans that earlier tests made and never came back to are nothing against this one."""
    patience = sys.modules.get("clfuse.policy.tiering")
    if patience is not None:
        monkeypatch.setattr(patience, "TRUSTED_PLANS", float("inf"))


@pytest.fixture(autouse=True)
def knows_nothing() -> None:
    """What NumPy had to calculate in earlier tests says nothing of this one."""
    choice = sys.modules.get("clfuse.policy.choice")
    if choice is not None:
        choice.reset()


@pytest.fixture
def launched(xp: ModuleType) -> Callable[[Callable[[], object]], int]:
    """How many kernels a call launches."""

    def count(call: Callable[[], object]) -> int:
        xp.synchronize()
        before = xp.stats()["kernels_launched"]
        call()
        xp.synchronize()
        return int(xp.stats()["kernels_launched"] - before)

    return count


@pytest.fixture
def setting(xp: ModuleType) -> Iterator[Callable[..., None]]:
    """Change settings until the test ends: ``setting(fusion="off")``."""
    with ExitStack() as stack:
        yield lambda **values: stack.enter_context(xp.config.override(**values))
