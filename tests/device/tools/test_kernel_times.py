"""`bench kernels` measures kernels in all ways that there are, and compares their results."""

from __future__ import annotations

from dataclasses import replace

import pytest

import clfuse as cf
from clfuse.tools.bench import kernels
from clfuse.tools.bench.kernel_programs import programs
from clfuse.tools.bench.limit import Copy

pytestmark = pytest.mark.clfuse_only


def test_the_benchmark_of_kernels_compares_all_ways_with_numpy() -> None:
    copy = Copy(cf.get_device(), 4096)
    found = {program.name: program for program in programs(quick=True)}
    assert len(found) == 21
    for name in ("stream", "gups", "forces", "prefix", "columns"):
        row = kernels.measure(found[name], 1, copy, lambda stage: None)
        assert not row.wrong
        assert min(*row.seconds.values(), *row.ratios.values()) > 0
    wrong = replace(found["gups"], kernels=lambda xp, given: [given[0] + xp.uint32(1)])
    assert "kernels" in kernels.measure(wrong, 1, copy, lambda stage: None).wrong
