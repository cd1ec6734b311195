"""Every geometry that tuning may choose gives the bits of the one that was planned."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy
import pytest

from clfuse.engine import plans
from clfuse.engine.evaluate import forget_plans
from clfuse.engine.executable import Prepared
from clfuse.engine.tuning import kept
from clfuse.runtime.files import geometries, storage
from clfuse.runtime.files.geometries import Kept
from clfuse.schedule.kinds import MAP, REDUCE, SCAN
from clfuse.schedule.records import Kernel
from clfuse.schedule.shape.variants import choices, is_exact
from tests.support.agreement import assert_bitwise
from tests.support.hostile import hostile

pytestmark = pytest.mark.clfuse_only

N = 1003
WIDE = 70


def values(dtype: Any, count: int = N) -> Any:
    return numpy.resize(hostile(numpy.dtype(dtype)), count)


def inexact(count: int = N) -> Any:
    return numpy.linspace(-7.3, 9.1, count)


Program = Callable[[ModuleType], list[Any]]

PROGRAMS: dict[str, Program] = {
    "maps": lambda xp: [
        xp.asarray(values(numpy.float64)) * 2.0 + xp.asarray(values(numpy.float64)[::-1].copy()),
        xp.asarray(values(numpy.float32)) / xp.float32(3),
    ],
    "integers": lambda xp: [
        (xp.asarray(values(numpy.int32)) // 7) ^ xp.asarray(values(numpy.int32))[::-1],
    ],
    "halves": lambda xp: [xp.asarray(values(numpy.float16)) * xp.float16(0.1) + xp.float16(3)],
    "complex": lambda xp: [
        xp.asarray(values(numpy.float64) + 1j) * xp.asarray(inexact() - 2j),
    ],
    "functions": lambda xp: [xp.exp(xp.asarray(inexact())) + xp.sin(xp.asarray(inexact()))],
    "normal": lambda xp: [xp.random.default_rng(3).standard_normal(N)],
    "strided": lambda xp: [xp.asarray(inexact(4 * N))[::3] * 2.0],
    "rows": lambda xp: [
        xp.asarray(inexact(30 * WIDE)).reshape(30, WIDE)[:, 1:-1] * xp.asarray(inexact(WIDE - 2)),
    ],
    "functions of rows": lambda xp: [
        xp.exp(xp.asarray(inexact(30 * WIDE)).reshape(30, WIDE)[:, 1:-1]),
    ],
    "long chain": lambda xp: [
        xp.sqrt(xp.sqrt(xp.asarray(abs(inexact())) / 3.0) / 5.0) / 7.0 / 9.0 / 11.0 / 13.0
    ],
    "joined": lambda xp: [
        xp.concatenate([xp.asarray(inexact(300)), xp.asarray(inexact(400))]) * 2.0,
    ],
    "gathered": lambda xp: [
        xp.asarray(inexact())[xp.asarray(numpy.arange(N) * 7 % N)] + 1.0,
    ],
    "in place": lambda xp: [updated(xp)],
    "sums of rows": lambda xp: [xp.asarray(inexact(300 * WIDE)).reshape(300, WIDE).sum(1)],
    "sums of columns": lambda xp: [xp.asarray(inexact(300 * WIDE)).reshape(300, WIDE).sum(0)],
    "softmax": lambda xp: [softmax(xp, xp.asarray(inexact(300 * WIDE)).reshape(300, WIDE))],
    "running sums": lambda xp: [xp.asarray(inexact(300 * WIDE)).reshape(300, WIDE).cumsum(1)],
    "running sums down": lambda xp: [xp.asarray(inexact(300 * WIDE)).reshape(300, WIDE).cumsum(0)],
}


def updated(xp: ModuleType) -> Any:
    x = xp.asarray(inexact())
    x[1:] += x[:-1] * 0.5
    return x


def softmax(xp: ModuleType, x: Any) -> Any:
    e = xp.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    storage.forget()
    geometries.forget()
    yield
    geometries.forget()
    storage.forget()


def computed(xp: ModuleType, program: Program) -> list[Any]:
    forget_plans()
    made = program(xp)
    xp.evaluate(*made)
    return [xp.asnumpy(each) for each in made]


def tunable() -> Iterator[tuple[Kernel, Prepared]]:
    """The kernels of all plans that may have other geometries."""
    for planned in plans.kept.values():
        for step, launches in zip(planned.steps, planned.schedule.steps, strict=True):
            kernel = launches[0]
            if isinstance(step, Prepared) and isinstance(kernel, Kernel) and len(launches) == 1:
                yield kernel, step


@pytest.mark.parametrize("schedule", ["cpu", "gpu"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_candidate_has_the_bits_of_what_was_planned(
    xp: ModuleType, name: str, schedule: str, planned_for: Any, setting: Any
) -> None:
    setting(tuning="on")
    planned_for(schedule, compute_units=2)
    traits = xp.get_device().traits
    expected = computed(xp, PROGRAMS[name])
    cases: list[tuple[str, tuple[tuple[str, int], ...]]] = []
    for kernel, step in tunable():
        key = kept.key_of(kernel, step.rendered)
        fields = choices(kernel, traits)
        cases += [(key, (each,)) for each in fields]
        # All fields changed at once, by the last candidate of each.
        both = tuple(sorted(dict(fields).items()))
        if len(both) > 1:
            cases.append((key, both))
    taken = 0
    for key, changes in cases:
        geometries.forget()
        found = Kept("a_kernel", changes, 2, 1, 1, key)
        geometries.note(geometries.about(traits), found)
        for wanted, actual in zip(expected, computed(xp, PROGRAMS[name]), strict=True):
            assert_bitwise(actual, wanted)
        taken += sum([step.kept is not None for _, step in tunable()])
    if name in ("maps", "rows", "gathered", "integers"):
        assert taken


def test_kinds_whose_order_follows_the_geometry_are_not_free() -> None:
    from clfuse.schedule import kinds

    found = [each for each in vars(kinds).values() if isinstance(each, kinds.KernelKind)]
    assert {each for each in found if each.free} == {MAP, REDUCE, SCAN}
    assert REDUCE.free == SCAN.free == {"work_items"}


def test_functions_keep_the_vectors_that_their_elements_are_in(
    xp: ModuleType, planned_for: Any, setting: Any
) -> None:
    setting(tuning="on")
    planned_for("cpu", compute_units=2)
    traits = xp.get_device().traits
    for name, exact in (("maps", True), ("functions", False), ("normal", False)):
        computed(xp, PROGRAMS[name])
        for kernel, _ in tunable():
            if kernel.kind is MAP:
                assert is_exact(kernel, traits) == exact
                fields = {field for field, _ in choices(kernel, traits)}
                assert exact == bool(fields & {"width", "unroll"})
