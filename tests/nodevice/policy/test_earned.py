"""What earned its kernels is written to a file that other processes read, and survives none of it
being right."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from clfuse.errors import DeviceWarning
from clfuse.ir import build
from clfuse.ir.fingerprint import digest
from clfuse.ir.nodes import loop, loud
from clfuse.ir.snapshot import take
from clfuse.policy import warm_start
from clfuse.policy.warm_start import is_known, note
from clfuse.runtime.files import storage
from tests.support.recording import FLOAT64, array, call, number

ONE, OTHER = "0123456789abcdef" * 2, "f" * 32


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    warm_start.forget()
    return tmp_path / "clfuse" / warm_start.FILE_NAME


def test_what_was_noted_is_known_to_the_next_process(file: Path) -> None:
    assert not is_known(ONE)
    assert not file.exists()
    for _ in range(2):
        note(ONE)
    assert is_known(ONE)
    assert file.read_text().count(ONE) == 1
    warm_start.forget()
    assert is_known(ONE)
    assert not is_known(OTHER)


def test_lines_that_are_no_digest_are_passed_over(file: Path) -> None:
    note(ONE)
    whole = file.read_bytes()
    torn = [whole[:-5], whole + b"1 ffff", b"\0\xff" + b"x" * 9999 + b"\n" + whole,
            whole.replace(b"1 ", b"2 ") + b"\n1 " + ONE.upper().encode()]
    for contents, known in zip(torn, (False, True, True, False), strict=True):
        file.write_bytes(contents)
        warm_start.forget()
        assert is_known(ONE) is known
        note(OTHER)  # after a line that somebody has not finished
        warm_start.forget()
        assert is_known(OTHER)
        assert is_known(ONE) is known


def test_a_full_file_keeps_its_newer_half(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm_start, "LARGEST_FILE", 3600)
    names = [f"{number:032x}" for number in range(300)]
    for name in names:
        note(name)
        assert file.stat().st_size <= 3700
    warm_start.forget()
    assert is_known(names[-1])
    assert not is_known(names[0])
    assert 40 < sum(map(is_known, names)) < 105


def test_processes_write_side_by_side(file: Path) -> None:
    script = (
        "from clfuse.policy.warm_start import note\n"
        "for number in range(200): note(f'{number:031x}{%d}')\n"
    )

    def run(which: int) -> None:
        subprocess.run([sys.executable, "-c", script % which], check=True)

    with ThreadPoolExecutor(3) as threads:
        list(threads.map(run, range(3)))
    assert all(is_known(f"{number:031x}{which}") for number in range(200) for which in range(3))


def test_without_a_folder_nothing_is_kept_and_nothing_fails(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "nowhere")  # not absolute
    monkeypatch.setenv("HOME", "")
    storage.forget()
    with pytest.warns(DeviceWarning, match="no home"):
        note(ONE)
    assert is_known(ONE)
    warm_start.forget()
    assert not is_known(ONE)
    assert not Path("nowhere").exists()
    file.parent.parent.joinpath("taken").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(file.parent.parent / "taken"))
    note(ONE)
    assert is_known(ONE)
    warm_start.forget()
    assert not is_known(ONE)


def name(root: object, about: object = "device") -> str:
    return digest(take([root]), about)


def test_a_structure_has_one_name_in_every_process() -> None:
    text = (
        "from tests.nodevice.policy.test_earned import *\n"
        "print(name(call('add', call('sqrt', array(3, 4)), number(2.5))))\n"
    )
    found = {name(call("add", call("sqrt", array(3, 4)), number(2.5)))}
    for seed in "12":
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        found.add(subprocess.run(
            [sys.executable, "-c", text], env=environment, capture_output=True, text=True,
            check=True,
        ).stdout.strip())
    assert len(found) == 1


def test_other_structures_have_other_names() -> None:
    x, y = array(3, 4), array(3, 4)
    programs = [
        x, call("add", x, y), call("add", x, x), call("subtract", x, y),
        call("add", array(4, 3), array(4, 3)), call("add", array(12), array(12)),
        call("add", array(3, 4, dtype="f4"), array(3, 4, dtype="f4")),
        call("add", call("sqrt", x), y), call("add", x, call("sqrt", y)),
        build.view(x, (2, 4), 0, (4, 1)), build.view(x, (2, 4), 4, (4, 1)),
        build.elementwise(
            loud(loop("add", (FLOAT64, FLOAT64), FLOAT64), "matmul"), (x, y), (3, 4)
        ),
    ]
    programs = [call("negative", program) for program in programs]
    names = [name(program) for program in programs] + [name(programs[0], "another")]
    assert len(set(names)) == len(names)
    assert name(programs[1]) == names[1]
    held = programs[7].inputs[0].inputs[0]
    assert held.op.name == "sqrt"
    assert name(programs[7]) != names[7], "somebody holds an inner value"


def test_numbers_do_not_belong_to_a_structure() -> None:
    x = array(5)
    assert name(call("add", x, number(1.5))) == name(call("add", x, number(np.pi)))
