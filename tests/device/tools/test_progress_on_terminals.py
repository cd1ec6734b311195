"""Bars on a terminal and in a pipe; and Ctrl-C while one is shown."""

from __future__ import annotations

import os
import select
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import clfuse

fcntl = pytest.importorskip("fcntl")
pytest.importorskip("termios")
pytest.importorskip("tqdm")

pytestmark = pytest.mark.clfuse_only

WAITING = """
import threading
import numpy
import pyopencl as cl
import clfuse as np
from clfuse import progress
from clfuse.runtime.context import waits
progress.AFTER_S = 0
numbers = numpy.arange(1000.0)
x = np.asarray(numbers) + np.zeros(1000)
np.evaluate(x)
np.evaluate(x * 2)  # its kernel is there
device = np.get_device()
gate = cl.UserEvent(device.context)
cl.enqueue_barrier(device.queue, wait_for=[gate])
waits.add(2 * waits.LONG)
def let_go():
    gate.set_status(cl.command_execution_status.COMPLETE)
timer = threading.Timer(SECONDS, let_go)
timer.start()
y = x * 2
try:
    np.evaluate(y)
    print("done", flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    timer.cancel()
    let_go()
print((y.get() == numbers * 2).all(), (x.get() == numbers).all(), float((x + y).sum()))
"""
RIGHT = "True True 1498500.0"

BUILDING = """
import clfuse as np
from clfuse import progress
progress.AFTER_S = 0
x = np.linspace(0, 1, 100_000)
print(float((np.sin(x) * 3).max()), flush=True)
"""

ENVIRONMENT = {
    "CLFUSE_HOST_US": "0", "CLFUSE_BUILD_AFTER_MS": "0", "CLFUSE_INLINE": "off",
    "CLFUSE_BACKGROUND": "on", "TERM": "xterm",
}  # fmt: skip


class OnTerminal:
    """A program whose three streams are a terminal of its own."""

    def __init__(self, folder: Path, text: str, *options: str, **variables: str) -> None:
        import pty
        import termios

        (folder / "program.py").write_text(text, encoding="utf-8")
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
        self._process = subprocess.Popen(
            [sys.executable, *options, "program.py"], cwd=folder,
            stdin=slave, stdout=slave, stderr=slave,
            env={**os.environ, **ENVIRONMENT, **variables}, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )  # fmt: skip
        os.close(slave)
        self.text = ""

    def read_until(self, wanted: str, seconds: float = 120.0) -> None:
        """Read until this was written."""
        end = time.monotonic() + seconds
        while wanted not in self.text:
            assert time.monotonic() < end, self.text
            if not self._read():
                raise AssertionError(self.text)

    def _read(self) -> bool:
        if not select.select([self._master], [], [], 1.0)[0]:
            return True
        try:
            part = os.read(self._master, 4096)
        except OSError:  # the program has ended, on Linux
            part = b""
        self.text += part.decode(errors="replace")
        return bool(part)

    def type(self, line: str) -> None:
        """Type a line at a prompt."""
        os.write(self._master, f"{line}\n".encode())

    def interrupt(self) -> None:
        """Ctrl-C."""
        os.write(self._master, b"\x03")

    def end(self) -> int:
        """The exit status, once all was read."""
        while self._read():
            pass
        os.close(self._master)
        return self._process.wait(timeout=60)


def test_ctrl_c_ends_a_wait_and_not_the_work(tmp_path: Path) -> None:
    program = OnTerminal(tmp_path, WAITING.replace("SECONDS", "20"))
    program.read_until("clfuse: waiting for the device 00:0")
    program.interrupt()
    program.read_until("interrupted")
    assert program.end() == 0, program.text
    assert RIGHT in program.text


def test_ctrl_c_at_a_prompt_leaves_everything_usable(tmp_path: Path) -> None:
    setup, _, _ = WAITING.replace("SECONDS", "60").partition("try:")
    plain = {"PYTHON_BASIC_REPL": "1", "PYTHON_COLORS": "0"}
    program = OnTerminal(tmp_path, setup, "-i", **plain)
    program.read_until(">>> ")
    program.type("np.evaluate(y)")
    program.read_until("clfuse: waiting for the device 00:0")
    program.interrupt()
    program.read_until("KeyboardInterrupt")
    shown = program.text[program.text.index("Traceback") :]
    assert shown.count("File") == 1  # the line that was typed
    program.type("timer.cancel(); let_go()")
    program.type(WAITING.splitlines()[-1])
    program.read_until(RIGHT)
    program.type("exit()")
    assert program.end() == 0, program.text


def test_a_bar_goes_when_the_wait_is_over(tmp_path: Path) -> None:
    if clfuse.get_device().simulation is not None:
        pytest.skip("a launch is waited for at once")
    program = OnTerminal(tmp_path, WAITING.replace("SECONDS", "1.5"))
    assert program.end() == 0, program.text
    bars, done, _ = program.text.partition("done")
    assert done
    assert "clfuse: waiting for the device 00:0" in bars
    assert bars.split("\r")[-2].isspace()
    assert RIGHT in program.text


def test_builds_show_how_many_are_done(tmp_path: Path) -> None:
    program = OnTerminal(tmp_path, BUILDING, XDG_CACHE_HOME=str(tmp_path), POCL_CACHE_DIR="")
    assert program.end() == 0, program.text
    assert "clfuse: building kernels" in program.text
    assert "2.52441" in program.text


@pytest.mark.parametrize(("setting", "is_shown"), [("auto", False), ("on", True), ("off", False)])
def test_pipes_see_a_bar_only_where_asked_for(
    tmp_path: Path, setting: str, is_shown: bool
) -> None:
    finished = piped(tmp_path, CLFUSE_PROGRESS=setting)
    assert ("clfuse: " in finished.stderr) == is_shown
    if is_shown and clfuse.get_device().simulation is None:  # whose launches are waited for at once
        assert "clfuse: waiting for the device" in finished.stderr
    assert finished.stdout == f"done\n{RIGHT}\n"


def test_a_terminal_sees_none_where_it_is_off(tmp_path: Path) -> None:
    program = OnTerminal(tmp_path, WAITING.replace("SECONDS", "1.5"), CLFUSE_PROGRESS="off")
    assert program.end() == 0, program.text
    assert program.text.split() == ["done", *RIGHT.split()]


def piped(folder: Path, **variables: str) -> Any:
    (folder / "program.py").write_text(WAITING.replace("SECONDS", "1.5"), encoding="utf-8")
    return subprocess.run(
        [sys.executable, "program.py"], cwd=folder, capture_output=True, text=True, check=True,
        timeout=120, env={**os.environ, **ENVIRONMENT, **variables},
    )
