"""What the table of memory traffic says of counts that are written down, and what is missing."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from clfuse.tools.bench import oclgrind, traffic
from clfuse.tools.bench.oclgrind import Counts, LocalCounts, Measured, SimulatorError, measured
from clfuse.tools.bench.simulated import Planned, Seen

RECORD = {
    "kernel": "map_add", "work_items": 8192, "work_group": 256, "groups": 32, "warps": 256,
    "loads": {"requests": 256, "asked": 32768, "sectors": 1024, "whole": 1024, "least": 1024},
    "stores": {"requests": 256, "asked": 32768, "sectors": 1024, "whole": 1024, "least": 1024},
    "local": {"requests": 0, "asked": 0, "passes": 0, "least": 0}, "atomics": 0,
    "local_atomics": 0, "fetched_sectors": 1024, "written_sectors": 1024, "read_nbytes": 32768,
    "written_nbytes": 32768,
}  # fmt: skip
PLAN = Planned("map_add", "map", 8192, 65536)
WHOLE = Planned("map_add", "map", 1_000_000, 8_000_000)


def row(record: dict[str, object] | None = None, whole: Planned | None = WHOLE) -> traffic.Row:
    """The row of one launch, as in `RECORD` but for what is given."""
    launch = measured(RECORD | (record or {}))
    (found,) = traffic.rows_of("program", [Seen(PLAN, launch, whole, 132)])
    return found


def loads(sectors: int, whole: int, least: int) -> dict[str, object]:
    counts = {"requests": 256, "asked": 32768, "sectors": sectors, "whole": whole, "least": least}
    return {"loads": counts, "fetched_sectors": whole}


def test_a_record_of_the_plugin_is_read() -> None:
    launch = measured(RECORD)
    assert launch.loads == Counts(256, 32768, 1024, 1024, 1024)
    assert launch.local == LocalCounts(0, 0, 0, 0)
    assert (launch.sector_nbytes, launch.cached_nbytes) == (65536, 65536)
    assert isinstance(launch, Measured)


def test_a_contiguous_map_has_a_ratio_of_one_and_no_flags() -> None:
    found = row()
    assert (found.ratio, found.per_vector, found.by_group) == (1.0, 1.0, 1.0)
    assert traffic.flags(found) == []


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (loads(8192, 8192, 1024), ["apart"]),
        (loads(4096, 1024, 1024), ["pieces"]),
        (loads(8192, 4096, 1024), ["apart", "pieces"]),
        ({**loads(8192, 8192, 8192), "fetched_sectors": 8192}, ["again"]),
        ({"local": {"requests": 9, "asked": 9, "passes": 90, "least": 9}}, ["banks"]),
        ({"read_nbytes": 65536}, ["plan"]),
        # Partial results that few groups write apart are nothing beside what they read.
        ({"stores": {"requests": 9, "asked": 36, "sectors": 72, "whole": 72, "least": 9}}, []),
    ],
)
def test_flags_say_what_is_remarkable(record: dict[str, object], expected: list[str]) -> None:
    assert traffic.flags(row(record)) == expected


@pytest.mark.parametrize(
    ("items", "nbytes", "expected"),
    [
        (5_000, 256_000_000, ["few"]),  # columns of (64000, 1000) float32 in five pieces
        (256, 512_000, ["few"]),  # partial results of columns
        (256, 32_000, []),  # those of one sum
        (67_584, 256_000_000, []),  # 512 for each of 132 multiprocessors
        (67_583, 256_000_000, ["few"]),
    ],
)
def test_work_items_are_few_where_each_has_much_to_move(
    items: int, nbytes: int, expected: list[str]
) -> None:
    assert traffic.flags(row(whole=Planned("map_add", "map", items, nbytes))) == expected


def test_launches_of_one_kernel_are_one_row_whole_inputs_dashes() -> None:
    launch = measured(RECORD)
    only = Planned("reduce_add", "reduce", 256, 64)
    twice = [Seen(PLAN, launch, WHOLE, 132)] * 2
    first, second = traffic.rows_of("program", [*twice, Seen(None, None, only, 132)])
    assert (first.launches, first.nbytes, first.ratio) == (2, 2 * 65536, 1.0)
    table = traffic.markdown([first, second])
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:4]]
    assert lines[0] == [
        "program", "map_add", "map", "2", "1,000,000", "131", "65.5", "65.5", "1.00", "1.00",
        "1.00", "2.0", "0", "0", "",
    ]  # fmt: skip
    assert lines[1] == ["program", "reduce_add", "reduce", "1", "256", *"-" * 9, ""]


def test_what_numpy_does_is_a_row_without_counts() -> None:
    on_host = traffic.Row("program", "NumPy, on the host", traffic.HOST, 1, 0, None, 0, (), 0)
    assert traffic.flags(on_host) == ["host"]
    assert traffic.cells(on_host) == (
        "program", "NumPy, on the host", "host", "1", *"-" * 10, "host",
    )  # fmt: skip


def test_work_items_of_small_inputs_stand_in_brackets() -> None:
    assert traffic.cells(row(whole=None))[4] == "(8,192)"


@pytest.mark.parametrize(("program", "package"), [("oclgrind", "oclgrind"), ("g++", "g\\+\\+")])
def test_a_program_that_is_missing_is_named_with_its_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, program: str, package: str
) -> None:
    other = tmp_path / ("g++" if program == "oclgrind" else "oclgrind")
    other.write_text("#!/bin/sh\nexit 0\n", encoding="utf-8")
    other.chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    expected = rf"{package} is not installed .*apt-get install {package}"
    with pytest.raises(SimulatorError, match=expected):
        oclgrind.plugin(tmp_path)


def test_missing_headers_are_named_with_the_compilers_words(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name, text in (
        ("oclgrind", "exit 0"), ("g++", "echo 'Plugin.h: No such file or directory' >&2\nexit 1"),
    ):  # fmt: skip
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        (tmp_path / name).chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(
        SimulatorError, match=r"(?s)apt-get install liboclgrind-dev opencl-c-headers.*No such file"
    ):
        oclgrind.plugin(tmp_path)
