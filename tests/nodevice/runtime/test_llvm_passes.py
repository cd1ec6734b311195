"""The LLVM of PoCL 6 is told once to leave instructions where they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from clfuse.runtime.drivers import llvm_passes

LINE = "7f00-7f01 r-xp 00000000 00:1b 123    {}\n"
PATHS = (
    "/usr/lib/x86_64-linux-gnu/libLLVM.so.18.1",
    "/usr/lib/llvm-19/lib/libLLVM-19.so.1",
    "/usr/lib/x86_64-linux-gnu/libLLVM-17.so.1",
    "/usr/lib/x86_64-linux-gnu/libLLVM-15.so.1",
    "/usr/lib/x86_64-linux-gnu/libLLVM.so.40.1",
    "/usr/lib/x86_64-linux-gnu/libclang-cpp.so.18.1",
    "/usr/lib/x86_64-linux-gnu/libpocl.so.2.13.0",
)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[bytes]:
    """The libraries in which the option was set; all of the paths are mapped, twice."""
    found: list[bytes] = []
    maps = tmp_path / "maps"
    maps.write_text("".join(LINE.format(path) for path in (*PATHS, "", "[heap]", *PATHS)))
    monkeypatch.setattr(llvm_passes, "MAPS", maps)
    monkeypatch.setattr(llvm_passes, "_told", set())
    monkeypatch.setattr(llvm_passes, "_set_option", found.append)
    return found


def test_versions_with_the_check_are_told_once(told: list[bytes]) -> None:
    llvm_passes.move_nothing()
    assert sorted(told) == sorted(path.encode() for path in PATHS[:2])
    llvm_passes.move_nothing()
    assert len(told) == 2


def test_a_library_that_comes_later_is_told_then(told: list[bytes]) -> None:
    llvm_passes.move_nothing()
    with llvm_passes.MAPS.open("a") as maps:
        maps.write(LINE.format("/opt/lib/libLLVM.so.19.1"))
    llvm_passes.move_nothing()
    assert told[2:] == [b"/opt/lib/libLLVM.so.19.1"]


def test_without_a_map_nothing_is_told(
    told: list[bytes], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(llvm_passes, "MAPS", tmp_path / "none")
    llvm_passes.move_nothing()
    assert not told
