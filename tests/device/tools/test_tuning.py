"""``bench --tune`` on a device: it measures, keeps, and later plans follow."""

from __future__ import annotations

import json
from pathlib import Path

import numpy
import pytest

import clfuse as np
from clfuse import config
from clfuse.runtime.files.tuning import COST_RANGES, RANGES
from clfuse.tools.bench import command, tune

pytestmark = pytest.mark.clfuse_only

TUNED = ("triad", "sum_of_squares", "softmax", "matmul_f32")
"""Programs whose kernels are tuned: a map, a fold, rows, tiles. All take a minute."""


def test_a_measured_device_keeps_its_traits_and_uses_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    device = np.get_device()
    before = device.untuned_traits
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    # Whether it works, not how fast it is: a simulated GPU needs no larger arrays than a CPU.
    monkeypatch.setattr(tune, "GPU_FACTOR", 1)
    try:
        with config.override(tuning="on"):
            assert command.main(["--tune", "--quick", *TUNED]) == 0
            (path,) = (tmp_path / "clfuse").glob("tuning-*.json")
            assert str(path) in capsys.readouterr().out
            contents = json.loads(path.read_text())
            measured = contents["measured"]
            assert 1e8 < measured["copy_nbytes_per_s"] < 1e14
            assert 1e-8 < measured["launch_s"] < 1e-1
            tuned = device.traits
            assert tuned.tuned == contents["when"]
            if config.settings.schedule == "auto":
                assert {name: getattr(tuned, name) for name in RANGES} == contents["traits"]
                costs = {name: getattr(tuned.costs, name) for name in COST_RANGES}
                assert costs == contents["costs"]
            # By hand, as another machine might be: operations cost so much that all is stored.
            contents["traits"]["operation_nbytes"] = 1000.0
            path.write_text(json.dumps(contents))
            device.reread_tuning()
            x = np.linspace(0.0, 1.0, 1000)
            y = x * x + 0.5
            assert len(np.explain(y[1:] - y[:-1]).kernels) == 2
            assert numpy.allclose(numpy.asarray(y[1:] - y[:-1]), numpy.diff(numpy.asarray(y)))
            with config.override(tuning="off"):
                y = x * x + 0.25
                assert len(np.explain(y[1:] - y[:-1]).kernels) == 1
                assert device.traits.operation_nbytes == before.operation_nbytes
    finally:
        device.reread_tuning()
