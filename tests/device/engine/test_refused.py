"""What the driver refuses a kernel of ours for is computed otherwise, with one warning."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import clfuse as cf
from clfuse.engine import refused_builds
from clfuse.engine.evaluate import forget_plans
from clfuse.runtime.files import reports
from clfuse.runtime.launches import launch, program

pytestmark = pytest.mark.clfuse_only

A = np.random.default_rng(3).integers(0, 9, (300, 40)) / 8.0
B = np.random.default_rng(4).integers(0, 9, (40, 30)) / 8.0
LONG = np.arange(400_000.0)


class Driver:
    """A driver that refuses kernels on purpose.

    Attributes
    ----------
    tried : list of str
        The sources that were to be built since `refuses` was called.
    """

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._build = program._build
        self._refuse: Callable[[str, str], bool] = lambda name, source: False
        self.tried: list[str] = []
        patch.setattr(program, "_build", self._built)

    def refuses(self, which: Callable[[str, str], bool]) -> None:
        """From here on those for which this, given name and source, is true."""
        self._refuse = which
        self.tried.clear()

    def refuses_the_first(self) -> None:
        """The text that comes first, whenever it comes."""
        self.refuses(lambda name, source: source == self.tried[0])

    def _built(self, device: Any, source: str, name: str, *rest: Any) -> program.Program:
        self.tried.append(source)
        if self._refuse(name, source):
            raise program._refused(device, source, name, "", "error: refused on purpose")
        return self._build(device, source, name, *rest)


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Iterator[Driver]:
    """No plan, no program and no warning from before."""
    monkeypatch.setattr(program, "_programs", {})
    monkeypatch.setattr(refused_builds, "_warned", {})
    monkeypatch.setattr(reports, "cache_folder", lambda: tmp_path)
    forget_plans()
    yield Driver(monkeypatch)
    forget_plans()


def put(m: Any, a: Any, b: Any) -> Any:
    x = a * 1
    x[x > 0.5] = (a * 2)[a > 0.5][::-1]
    return x


def walked(m: Any, a: Any, b: Any) -> Any:
    x = a * 1
    for _ in range(3):
        x[1:-1] = (x[2:] + x[:-2]) / 2
    return x


CASES: dict[str, tuple[str, str, Callable[..., Any]]] = {
    "map": ("cpu", "map", lambda m, a, b: m.sqrt(a * 2 + 1) - a / 3),
    "reduction": ("cpu", "reduce", lambda m, a, b: (a * 2 + 1).sum(1) / 3),
    "columns": ("gpu", "reduce", lambda m, a, b: (a * 2 + 1).max(0) / 3),
    "rows": ("cpu", "rows|reduce", lambda m, a, b: (a - a.mean(1, keepdims=True)) / a.std()),
    "scan": ("cpu", "scan", lambda m, a, b: a.cumsum(1) + 1),
    "radix sort": ("gpu", "sort|radix", lambda m, a, b: m.sort(a, 1)),
    "product": ("gpu", "matmul", lambda m, a, b: a @ b + 1),
    "gather": ("gpu", "map_gather", lambda m, a, b: a[m.arange(300) * 7 % 300] + 1),
    "selection": ("cpu", "compact", lambda m, a, b: a[a > 0.5] + 1),
    "writing by a mask": ("gpu", "expand", put),
    "joined rows": ("cpu", "reduce", lambda m, a, b: m.concatenate([a[:1], a]).mean(1) * 2),
    "joined launches": ("cpu", "reduce", lambda m, a, b: m.arange(400_000.0).sum()),
    "steps in place": ("cpu", "map|tiles", walked),
}


@pytest.mark.parametrize("case", CASES)
def test_what_no_kernel_of_its_kind_is_built_for_numpy_computes(driver: Driver, case: str) -> None:
    schedule, pattern, function = CASES[case]
    driver.refuses(lambda name, source: re.match(pattern, name) is not None)
    with cf.config.override(schedule=schedule, host_us=0):
        a, b = cf.asarray(A), cf.asarray(B)
        before = cf.stats()["host_evaluations"]
        with pytest.warns(cf.KernelBuildWarning, match="NumPy computes its values") as caught:
            first = function(cf, a, b).get()
        assert cf.stats()["host_evaluations"] > before
        assert len(caught) == 1
        assert re.search(r"/clfuse-\w+-[0-9a-f]{16}\.cl", str(caught[0].message)) is not None
        driver.tried.clear()
        again = function(cf, a, b).get()
        assert not any(re.search(rf"__kernel void ({pattern})", text) for text in driver.tried)
    expected = function(np, A, B)
    np.testing.assert_allclose(first, expected, rtol=1e-13)
    np.testing.assert_array_equal(first, again)


@pytest.mark.parametrize("case", ["map", "rows", "joined rows"])
def test_a_kernel_that_is_refused_is_made_of_smaller_ones(driver: Driver, case: str) -> None:
    schedule, _, function = CASES[case]
    driver.refuses_the_first()
    with cf.config.override(schedule=schedule, host_us=0):
        a, b = cf.asarray(A), cf.asarray(B)
        before = cf.stats()["host_evaluations"]
        with pytest.warns(cf.KernelBuildWarning, match="smaller kernels") as caught:
            first = function(cf, a, b).get()
        assert len(caught) == 1
        assert len(set(driver.tried)) > 2
        driver.tried.clear()
        again = function(cf, a, b).get()
        assert cf.stats()["host_evaluations"] == before
    assert not driver.tried
    np.testing.assert_allclose(first, function(np, A, B), rtol=1e-13)
    np.testing.assert_array_equal(first, again)


def test_a_long_kernel_that_is_refused_is_cut_in_half(driver: Driver) -> None:
    driver.refuses_the_first()
    with cf.config.override(host_us=0):
        a = cf.asarray(A)
        with pytest.warns(cf.KernelBuildWarning, match="smaller kernels"):
            found = (((((a + 1) * 2 - 3) * a + 5) * a - 7) * 2).get()
    assert len(driver.tried) == 4  # itself, twice, and two halves
    np.testing.assert_allclose(found, ((((A + 1) * 2 - 3) * A + 5) * A - 7) * 2, rtol=1e-13)


def test_what_is_refused_once_is_built_at_the_second_time(driver: Driver) -> None:
    driver.refuses(lambda name, source: len(driver.tried) == 1)
    with cf.config.override(host_us=0):
        found = (cf.sqrt(cf.asarray(A)) + 1).get()
    assert len(driver.tried) == 2
    np.testing.assert_array_equal(found, np.sqrt(A) + 1)


def test_what_was_written_in_place_is_written_once(driver: Driver) -> None:
    driver.refuses(lambda name, source: "sqrt" in name)
    with cf.config.override(host_us=0):
        x = cf.zeros(1000)
        cf.evaluate(x)
        x += 1
        y = cf.sqrt(x + 3)
        x += 1
        with pytest.warns(cf.KernelBuildWarning):
            cf.evaluate(x, y)
    assert x.get().tolist() == [2.0] * 1000
    assert y.get().tolist() == [2.0] * 1000


def test_a_warning_that_is_an_error_leaves_everything_as_it_was(driver: Driver) -> None:
    driver.refuses_the_first()
    with cf.config.override(host_us=0):
        x = cf.asarray(np.ones(1000))
        x += 1
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(cf.KernelBuildWarning):
                cf.evaluate(x)
    assert x.get().tolist() == [2.0] * 1000


def test_a_traced_function_without_kernels_is_called(driver: Driver) -> None:
    driver.refuses(lambda name, source: True)

    @cf.jit
    def step(x: Any, y: Any) -> Any:
        x += 1
        return cf.sqrt(x + y) * 2

    with cf.config.override(host_us=0):
        x, y = cf.zeros(100), cf.asarray(LONG[:100])
        traces = cf.stats()["jit_traces"]
        with pytest.warns(cf.KernelBuildWarning) as caught:
            found = [step(x, y).get() for _ in range(3)]
        assert cf.stats()["jit_traces"] == traces + 1
    assert len({str(each.message) for each in caught}) == len(caught)
    for number, each in enumerate(found):
        np.testing.assert_allclose(each, np.sqrt(number + 1 + LONG[:100]) * 2, rtol=1e-15)
    assert x.get().tolist() == [3.0] * 100


def test_a_traced_function_is_replayed_with_smaller_kernels(driver: Driver) -> None:
    driver.refuses_the_first()
    step = cf.jit(lambda x: cf.sqrt(x * 2 + 1) - x / 3)
    with cf.config.override(host_us=0):
        x = cf.asarray(A)
        with pytest.warns(cf.KernelBuildWarning) as caught:
            first = step(x).get()
        before = cf.stats()["jit_replays"]
        again = step(x).get()
        assert cf.stats()["jit_replays"] == before + 1
    assert len(caught) == 1
    np.testing.assert_allclose(first, np.sqrt(A * 2 + 1) - A / 3, rtol=1e-13)
    np.testing.assert_array_equal(first, again)


ADD_ONE = "__kernel void add_one(__global double *x) { x[get_global_id(0)] += 1; }"


def test_what_somebody_wrote_runs_between_what_numpy_computes(driver: Driver) -> None:
    driver.refuses(lambda name, source: name != "add_one")
    with cf.config.override(host_us=0):
        x = cf.asarray(LONG[:1000]) * 2
        cf.RawKernel(ADD_ONE, "add_one")((1000,), (1,), (x,))
        y = cf.sqrt(x) + x
        with pytest.warns(cf.KernelBuildWarning):
            cf.evaluate(x, y)
    expected = LONG[:1000] * 2 + 1
    assert x.get().tolist() == expected.tolist()
    np.testing.assert_allclose(y.get(), np.sqrt(expected) + expected, rtol=1e-15)


def test_an_error_in_what_somebody_wrote_is_his(driver: Driver) -> None:
    driver.refuses(lambda name, source: "thrice" in source)
    thrice = cf.ElementwiseKernel(
        "float64 x", "float64 y", "y = 0; for (int k = 0; k < 3; k++) y += x;", "thrice"
    )
    with cf.config.override(host_us=0):
        y = thrice(cf.asarray(A) + 1) * 2
        for _ in range(2):
            with pytest.raises(cf.KernelBuildError, match="on purpose"):
                y.get()
        driver.refuses(lambda name, source: False)
        np.testing.assert_allclose(y.get(), (A + 1) * 6, rtol=1e-15)


def test_a_launch_refused_for_its_sizes_is_a_refused_kernel(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check(program: program.Program, *sizes: Any) -> None:
        if "sqrt" in program.name:
            raise cf.KernelBuildError(f"{program.name}: too many work-items on purpose")

    monkeypatch.setattr(launch, "check_sizes", check)
    with cf.config.override(host_us=0):
        y = cf.sqrt(cf.asarray(A) + 1)
        with pytest.warns(cf.KernelBuildWarning, match="too many work-items on purpose"):
            found = y.get()
    np.testing.assert_array_equal(found, np.sqrt(A + 1))


def test_reports_are_one_a_text_and_at_most_so_many(tmp_path: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(reports, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(reports, "REPORTS_KEPT", 3)
    paths = [reports.write_report("k" * 300, f"text {n}") for n in (0, 1, 1, 2, 3, 4, 4)]
    assert len(set(paths)) == 5
    kept = list((tmp_path / "reports").iterdir())
    assert len(kept) == 3
    with open(paths[-1], encoding="utf-8") as file:
        assert file.read() == "text 4"


def test_without_a_cache_reports_lie_in_a_folder_of_the_process(
    tmp_path: Any, monkeypatch: Any
) -> None:
    (tmp_path / "reports").write_text("a file where the folder would be")
    monkeypatch.setattr(reports, "cache_folder", lambda: tmp_path)
    own = tmp_path / "own"
    monkeypatch.setattr(reports, "_own_folder", lambda: own)
    assert reports.write_report("k", "text").startswith(str(own))
    monkeypatch.setattr(reports, "cache_folder", lambda: None)
    assert reports.write_report("k", "text") == str(next(own.iterdir()))
