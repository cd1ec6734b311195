"""The file of geometries that tuning has chosen: what is whole is read back, and nothing else."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from clfuse.runtime.files import geometries, storage
from clfuse.runtime.files.geometries import Kept
from clfuse.target.traits import DeviceTraits

DEVICE = geometries.about(DeviceTraits(name="Some CPU", driver="1.2.3"))
KEY = "0123456789abcdef" * 2
FOUND = Kept("map_add", (("width", 4), ("work_items", 32)), 2000, 1000, 5, KEY)


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    storage.forget()
    geometries.forget()
    yield tmp_path / "clfuse" / geometries.FILE_NAME
    storage.forget()
    geometries.forget()


def reread() -> Kept | None:
    geometries.forget()
    return geometries.find(DEVICE, KEY)


def test_what_was_chosen_is_read_back(file: Path) -> None:
    assert geometries.find(DEVICE, KEY) is None
    geometries.note(DEVICE, FOUND)
    assert geometries.find(DEVICE, KEY) == FOUND
    assert reread() == FOUND
    assert geometries.of_device(DEVICE) == [FOUND]
    assert oct(file.stat().st_mode & 0o777) == "0o600"


def test_a_later_choice_counts() -> None:
    other = replace(FOUND, changes=(), tried=7)
    geometries.note(DEVICE, FOUND)
    geometries.note(DEVICE, other)
    assert reread() == other
    assert geometries.of_device(DEVICE) == [other]


def test_another_device_or_driver_has_choices_of_its_own() -> None:
    geometries.note(DEVICE, FOUND)
    for traits in (
        DeviceTraits(name="Some CPU", driver="1.2.4"),
        DeviceTraits(name="Other CPU", driver="1.2.3"),
        DeviceTraits(name="Some CPU", driver="1.2.3", compute_units=64),
    ):
        assert geometries.find(geometries.about(traits), KEY) is None


@pytest.mark.parametrize("damage", [
    lambda line: line[:-3] + b"\n",
    lambda line: line.replace(b"work_items=32", b"work_items=64"),
    lambda line: line.replace(b"1 ", b"2 ", 1),
    lambda line: line.replace(b"width=4", b"width=-4"),
    lambda line: b"\0" * len(line),
])
def test_lines_that_are_damaged_are_ignored(file: Path, damage: object) -> None:
    geometries.note(DEVICE, FOUND)
    line = file.read_bytes().strip() + b"\n"
    assert callable(damage)
    file.write_bytes(b"\xff\xfe nonsense\n" + damage(line))
    assert reread() is None
    geometries.note(DEVICE, FOUND)
    assert reread() == FOUND


def test_an_unfinished_line_costs_no_other(file: Path) -> None:
    geometries.note(DEVICE, FOUND)
    with file.open("ab") as handle:
        handle.write(b"1 0123")
    other = replace(FOUND, key="f" * 32)
    geometries.note(DEVICE, other)
    geometries.forget()
    assert geometries.of_device(DEVICE) == [FOUND, other]


def test_of_a_file_that_is_full_the_older_half_goes(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(geometries, "LARGEST_FILE", 4000)
    for number in range(100):
        geometries.note(DEVICE, replace(FOUND, key=f"{number:032x}"))
    assert os.path.getsize(file) < 4300
    geometries.forget()
    kept = geometries.of_device(DEVICE)
    assert kept[-1].key == f"{99:032x}"
    assert 10 < len(kept) < 40


def test_a_choice_says_what_it_gained() -> None:
    assert str(FOUND) == "width 4, work_items 32: 1 us instead of 2 us, 50% less"
    assert "as planned" in str(replace(FOUND, changes=()))
