"""What ``bench --tune`` keeps on disk is read back, and only if all of it is right."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from clfuse.errors import DeviceWarning
from clfuse.runtime.files import tuning
from clfuse.runtime.files.tuning import COST_RANGES, RANGES, Measured
from clfuse.target.traits import DeviceTraits

DEVICE = DeviceTraits(name="Some CPU", platform="Some CL", driver="1.2.3", compute_units=4)
FOUND = replace(
    DEVICE,
    vector_bytes=64,
    work_items=32,
    stream_nbytes=1 << 62,
    reads_past=True,
    operation_nbytes=0.25,
    launch_nbytes=50_000,
    gather_weight=7.5,
    unrolled_weight=32.0,
    costs=replace(DEVICE.costs, addition_ns=0.3, launch_ns=9e3),
)
MEASURED = Measured(12e9, 4e-6, 2e-11)
WHEN = "2026-01-02 03:04 UTC"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    tuning._warned.clear()
    return tmp_path


def test_what_was_measured_is_read_back() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tuning.apply(DEVICE) is DEVICE  # nothing yet
        path = tuning.write(FOUND, MEASURED, WHEN)
        assert tuning.apply(DEVICE) == replace(FOUND, tuned=WHEN)
    assert path.parent.name == "clfuse"
    contents = json.loads(path.read_text())
    assert contents["version"] == tuning.VERSION
    assert [contents[key] for key in ("name", "driver")] == ["Some CPU", "1.2.3"]


def test_every_device_has_a_file_of_its_own() -> None:
    others = [replace(DEVICE, name="Other CPU"), replace(DEVICE, platform="Other CL"),
              replace(DEVICE, compute_units=5)]
    assert len({tuning.path_of(traits) for traits in [DEVICE, *others]}) == 4
    assert tuning.path_of(replace(DEVICE, driver="1.2.4")) == tuning.path_of(DEVICE)


def changed(**changes: Any) -> Callable[[str], str]:
    return lambda text: json.dumps({**json.loads(text), **changes})


def trait(**changes: Any) -> Callable[[str], str]:
    def damage(text: str) -> str:
        contents = json.loads(text)
        contents["traits"].update(changes)
        return json.dumps(contents)

    return damage


def without(key: str) -> Callable[[str], str]:
    def damage(text: str) -> str:
        contents = json.loads(text)
        contents.pop(key, None)
        contents["traits"].pop(key, None)
        return json.dumps(contents)

    return damage


@pytest.mark.parametrize(
    ("damage", "what"),
    [
        pytest.param(lambda text: "", "no JSON", id="empty"),
        pytest.param(lambda text: text[: len(text) // 2], "no JSON", id="truncated"),
        pytest.param(lambda text: "\x00\xff" + text, "no JSON", id="bytes"),
        pytest.param(lambda text: "[" * 60_000, "no JSON", id="deep"),
        pytest.param(lambda text: text + " " * (1 << 17), "more than", id="long"),
        pytest.param(lambda text: "[1, 2]", "a list", id="list"),
        pytest.param(changed(version=1), "version 1", id="version"),
        pytest.param(changed(version="2"), "version '2'", id="version of another type"),
        pytest.param(without("version"), "version None", id="no version"),
        pytest.param(changed(name="Other CPU"), "name 'Other CPU'", id="device"),
        pytest.param(changed(driver="1.2.4"), "driver '1.2.4'", id="driver"),
        pytest.param(changed(schedule="gpu"), "schedule 'gpu'", id="schedule"),
        pytest.param(changed(traits=[]), "traits should be", id="traits of another type"),
        pytest.param(changed(when=5), "when is 5", id="date"),
        pytest.param(changed(measured={}), "what was measured", id="measured"),
        pytest.param(
            changed(measured={"copy_nbytes_per_s": -1, "launch_s": 1, "operation_s": 1}),
            "copy_nbytes_per_s is -1", id="negative bandwidth"),
        pytest.param(without("work_items"), "traits should be", id="missing trait"),
        pytest.param(trait(fp64=False), "traits should be", id="foreign trait"),
        pytest.param(trait(work_items="64"), "work_items is '64'", id="text"),
        pytest.param(trait(work_items=64.0), "work_items is 64.0", id="float"),
        pytest.param(trait(work_items=True), "work_items is True", id="bool"),
        pytest.param(trait(work_items=None), "work_items is None", id="null"),
        pytest.param(trait(work_items=0), "work_items is 0", id="too small"),
        pytest.param(trait(work_items=10**30), "work_items is 1000", id="too large"),
        pytest.param(trait(reads_past=1), "reads_past is 1 instead of true", id="no bool"),
        pytest.param(trait(vector_bytes=48), "no power of two", id="odd vectors"),
        pytest.param(trait(operation_nbytes=math.nan), "operation_nbytes is nan", id="nan"),
        pytest.param(trait(operation_nbytes=math.inf), "operation_nbytes is inf", id="inf"),
        pytest.param(trait(gather_weight=-1.0), "gather_weight is -1", id="negative"),
    ],
)
def test_a_file_that_is_wrong_is_ignored_with_one_warning(
    damage: Callable[[str], str], what: str
) -> None:
    path = tuning.write(FOUND, MEASURED, WHEN)
    path.write_text(damage(path.read_text()), encoding="latin-1")
    with pytest.warns(DeviceWarning, match="CLFUSE_TUNING=off") as seen:
        assert tuning.apply(DEVICE) is DEVICE
    (warning,) = seen
    assert what in str(warning.message)
    assert str(path) in str(warning.message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tuning.apply(DEVICE) is DEVICE
        tuning.write(FOUND, MEASURED, WHEN)  # measured again
        assert tuning.apply(DEVICE).tuned == WHEN


def test_a_folder_in_its_place_is_ignored_with_one_warning() -> None:
    path = tuning.path_of(DEVICE)
    assert path is not None
    path.mkdir(parents=True)
    with pytest.warns(DeviceWarning, match="defaults"):
        assert tuning.apply(DEVICE) is DEVICE


def test_without_a_folder_nothing_is_read_and_writing_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tuning, "cache_folder", lambda: None)
    assert tuning.apply(DEVICE) is DEVICE
    with pytest.raises(OSError, match="XDG_CACHE_HOME"):
        tuning.write(FOUND, MEASURED, WHEN)


def test_whatever_may_be_written_may_be_read() -> None:
    for end in (1, 2):
        limits = {name: kind(allowed[end - 1]) for name, (kind, *allowed) in RANGES.items()}
        of_costs = {name: allowed[end] for name, allowed in COST_RANGES.items()}
        traits = replace(DEVICE, **limits, costs=replace(DEVICE.costs, **of_costs))
        tuning.write(traits, MEASURED, WHEN)
        assert tuning.apply(DEVICE) == replace(traits, tuned=WHEN)
