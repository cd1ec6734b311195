"""A kernel class is added by facts, a finisher, a writer, a template and a rule: nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from clfuse.codegen import kernels, templates
from clfuse.codegen.kinds.writing import Writing
from clfuse.codegen.lines.loops import before, compute
from clfuse.schedule.finish.finishers import FINISHERS
from clfuse.schedule.kinds import MAP, KernelKind
from clfuse.schedule.lower.emission import ValueTable
from clfuse.schedule.records import Kernel
from clfuse.target.traits import DeviceTraits

pytestmark = pytest.mark.clfuse_only

EACH = KernelKind("each", elementwise=True)
"""A work-item for every element of one-dimensional maps."""

TEMPLATE = """\
__kernel void ${k.name}(${k.signature})
{
    const ${k.index} j = get_global_id(0);
    if (j >= ${k.extent})
        return;
% for line in k.lines:
    ${line}
% endfor
}
"""


def finish(kernel: Kernel, traits: DeviceTraits, values: ValueTable) -> list[Kernel]:
    kernel.schedule, kernel.vector, kernel.work_items = "cpu", 0, kernel.extents[0]
    return [kernel]


def fill(kernel: Kernel, writing: Writing) -> str:
    body, k = writing.body(kernel), writing.context
    k.extent = writing.arguments.integer("n", kernel.extents[0])
    lines, uniform = before(body, kernel)
    inside, _ = compute(body, kernel, 1, uniform)
    k.lines = [*body.group_lines, *lines, *inside]
    return "each.cl.mako"


@pytest.fixture
def each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KernelKind]:
    """The kind, added; its rule is that all one-dimensional maps of one pass are of it."""
    usual = FINISHERS[MAP]

    def rule(kernel: Kernel, traits: DeviceTraits, values: ValueTable) -> list[Kernel]:
        if len(kernel.extents) == 1 and not kernel.then and not kernel.boxed:
            return FINISHERS[EACH](replace(kernel, kind=EACH), traits, values)
        return usual(kernel, traits, values)

    (tmp_path / "each.cl.mako").write_text(TEMPLATE)
    (tmp_path / "lib").symlink_to(templates.folder() / "lib")
    for path in templates.folder().glob("*.mako"):
        (tmp_path / path.name).symlink_to(path)
    with monkeypatch.context() as patch:
        patch.setattr(templates, "folder", lambda: tmp_path)
        patch.setitem(FINISHERS, EACH, finish)
        patch.setitem(FINISHERS, MAP, rule)
        patch.setitem(kernels.WRITERS, EACH, fill)
        templates._template.cache_clear()
        yield EACH
    templates._template.cache_clear()


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_toy_kind_computes_what_maps_compute(
    each: KernelKind, xp: ModuleType, size: int
) -> None:
    numbers = np.arange(size) / 8
    x, y = xp.array(numbers), xp.array(numbers[::-1].copy())
    xp.evaluate(x, y)
    z = xp.sqrt(x) * 3 - y[::-1]
    (kernel,) = xp.explain(z).kernels
    assert kernel.kind == "each"
    assert "get_global_id(0)" in kernel.source
    np.testing.assert_array_equal(np.array(z), np.sqrt(numbers) * 3 - numbers)


def test_other_kernels_stay_what_they_are(each: KernelKind, xp: ModuleType) -> None:
    x = xp.array(np.arange(600.0).reshape(20, 30))
    y = (x * 2).sum(axis=1) + 1
    assert {kernel.kind for kernel in xp.explain(y).kernels} == {"reduce"}
    np.testing.assert_array_equal(np.array(y), np.arange(600.0).reshape(20, 30).sum(1) * 2 + 1)


def test_every_kind_has_a_finisher_and_a_writer() -> None:
    assert set(FINISHERS) == set(kernels.WRITERS)
    assert len({kind.name for kind in FINISHERS}) == len(FINISHERS)
