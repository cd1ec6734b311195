"""Settings: where they come from, what they refuse, how tests change them; what an import costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

from clfuse import config
from clfuse.config import SETTINGS, Settings, override, settings
from clfuse.counters import counters, reset_peak, snapshot
from clfuse.errors import SettingError


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    """Every test starts from an environment without settings, and leaves the real one in force."""
    for row in SETTINGS:
        monkeypatch.delenv(row.env, raising=False)
    config.reload()
    yield monkeypatch
    monkeypatch.undo()
    config.reload()


def test_every_row_has_an_attribute_and_an_acceptable_default():
    assert {row.name for row in SETTINGS} == set(Settings.__annotations__)
    for row in SETTINGS:
        assert row.value_of(row.default) == row.default == getattr(settings, row.name)
        assert row.env == f"CLFUSE_{row.name.upper()}"


def test_plans_are_kept_apart_by_the_settings_they_need(environment):
    changes = {"schedule": "gpu", "vector_bytes": 16, "work_items": 3, "stream_bytes": 0,
               "tile_bytes": 0, "tuning": "off", "fp": "fast", "fusion": "off",
               "libraries": "off", "inline": "off"}  # fmt: skip
    assert {row.name for row in SETTINGS if row.plans} == set(changes)
    usual = settings.planning
    for name, value in changes.items():
        with override(**{name: value}):
            assert settings.planning != usual
        assert settings.planning == usual
    with override(max_nodes=5):
        assert settings.planning == usual
    environment.setenv("CLFUSE_FP", "fast")
    settings.__dict__.clear()  # as before the first look
    assert settings.planning != usual


@pytest.mark.parametrize(
    ("text", "value"), [("on", True), ("OFF", False), ("0", False), (" 1 ", True)]
)
def test_a_switch_takes_the_usual_words(environment, text, value):
    environment.setenv("CLFUSE_FUSION", text)
    config.reload()
    assert settings.fusion is value


@pytest.mark.parametrize(
    ("text", "value"),
    [("0", 0), ("300000", 300_000), ("64K", 65_536), (" 512m ", 512 << 20), ("4G", 4 << 30)],
)
def test_a_number_of_bytes_may_have_a_unit(environment, text, value):
    environment.setenv("CLFUSE_MEMORY_LIMIT", text)
    config.reload()
    assert settings.memory_limit == value


def test_misspelt_names_and_bad_values_have_the_nearest_one(environment):
    environment.setenv("CLFUSE_FUSON", "off")
    environment.setenv("CLFUSE_FP", "fas")
    environment.setenv("CLFUSE_HOST_US", "many")
    environment.setenv("CLFUSE_ZZZZ", "1")
    environment.setenv("CLFUSE_TEST_ANYTHING", "1")  # of clfuse's tests
    faults = {fault.split()[0].rstrip(":"): fault for fault in config.environment_faults()}
    assert faults["CLFUSE_FUSON"] == (
        "CLFUSE_FUSON is no setting of clfuse's; did you mean CLFUSE_FUSION?"
    )
    assert faults["CLFUSE_FP"] == (
        "CLFUSE_FP: 'fas'; it takes strict or fast; did you mean fast?"
    )
    assert faults["CLFUSE_HOST_US"].endswith("it takes a whole number of microseconds")
    assert "there are CLFUSE_DEVICE, " in faults["CLFUSE_ZZZZ"]
    assert len(faults) == 4


def test_the_import_says_what_is_wrong_with_variables(environment):
    environment.setenv("CLFUSE_FUSION", "maybe")
    environment.setenv("CLFUSE_FUSON", "off")
    finished = subprocess.run(
        [sys.executable, "-W", "always", "-c", "import clfuse"],
        capture_output=True, text=True, timeout=120,
    )
    assert finished.returncode == 0
    shown = finished.stderr.splitlines()
    # Python 3.13 shows the line below each.
    places = [line.partition(" ")[0] for line in shown if line[:1] != " "]
    assert places == ["<string>:1:", "<string>:1:"]
    assert "SettingWarning: CLFUSE_FUSION: 'maybe'; it takes on or off" in finished.stderr
    assert "SettingWarning: CLFUSE_FUSON is no setting" in finished.stderr


def test_an_empty_variable_means_the_default(environment):
    environment.setenv("CLFUSE_FALLBACK", "")
    config.reload()
    assert settings.fallback == "auto"


@pytest.mark.parametrize(
    ("variable", "text", "choice"),
    [
        ("CLFUSE_FUSION", "maybe", "on or off"),
        ("CLFUSE_FP", "loose", "strict or fast"),
        ("CLFUSE_MAX_NODES", "many", "whole number"),
        ("CLFUSE_MAX_NODES", "0", "whole number from 1"),
        ("CLFUSE_MAX_NODES", "1.5", "whole number"),
        ("CLFUSE_VECTOR_BYTES", "48", "power of two"),
        ("CLFUSE_SCHEDULE", "tpu", "auto, cpu or gpu"),
        ("CLFUSE_MEMORY_LIMIT", "much", "K, M, G or T"),
        ("CLFUSE_MEMORY_LIMIT", "-1", "whole number of bytes"),
        ("CLFUSE_MEMORY_LIMIT", "1.5G", "whole number of bytes"),
        ("CLFUSE_MEMORY_LIMIT", "5X", "whole number of bytes"),
    ],
)
def test_a_bad_value_names_variable_value_and_choices(
    environment, variable, text, choice
):
    environment.setenv(variable, text)
    with pytest.raises(SettingError) as caught:
        config.reload()
    assert variable in str(caught.value)
    assert repr(text) in str(caught.value)
    assert choice in str(caught.value)
    assert isinstance(caught.value, ValueError)


def test_a_bad_value_is_reported_again_and_is_no_default(environment):
    environment.setenv("CLFUSE_FP", "loose")
    with pytest.raises(SettingError):
        config.reload()
    with pytest.raises(SettingError):
        _ = settings.fusion


def test_the_environment_is_read_once(environment):
    assert settings.fp == "strict"
    environment.setenv("CLFUSE_FP", "fast")
    assert settings.fp == "strict"
    config.reload()
    assert settings.fp == "fast"


def test_override_ends_with_its_block_even_after_an_error():
    with pytest.raises(KeyError), override(fusion="off", max_nodes=5):
        assert settings.fusion is False
        with override(fusion=True):
            assert settings.fusion is True
        assert settings.fusion is False
        assert settings.max_nodes == 5
        raise KeyError
    assert settings.fusion is True
    assert settings.max_nodes == 20_000


def test_a_refused_override_changes_nothing():
    with pytest.raises(SettingError, match="there are device, "), override(fusoin=False):
        pass
    with pytest.raises(SettingError, match="CLFUSE_FP"), override(fusion=False, fp="loose"):
        pass
    assert settings.fusion is True


def test_a_setting_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no setting 'colour'"):
        _ = settings.colour


def test_a_snapshot_of_counters_is_a_copy_and_peaks_restart():
    before = snapshot()
    counters["fallbacks"] += 1
    assert snapshot()["fallbacks"] == before["fallbacks"] + 1
    counters["fallbacks"] -= 1
    counters["device_bytes_peak"] += 1000
    reset_peak()
    assert counters["device_bytes_peak"] == counters["device_bytes_now"]


def imported_by(statement: str) -> set[str]:
    """The modules that a fresh interpreter has after a statement."""
    program = f"{statement}; import sys; print(*sys.modules)"
    finished = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return set(finished.stdout.split())


@pytest.mark.parametrize(
    "module",
    [
        "clfuse", "clfuse.runtime.devices.selection", "clfuse.runtime.memory.buffers",
        "clfuse.runtime.launches.launch",
    ],
)
def test_importing_touches_neither_opencl_nor_mako(module):
    assert not {"pyopencl", "mako"} & imported_by(f"import {module}")
