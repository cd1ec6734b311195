"""`clfuse.watch`: what it says of memory and activity, where, and until when."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from types import ModuleType

import pytest

from clfuse.counters import counters
from clfuse.runtime.devices.watching import Watch, described

pytestmark = pytest.mark.clfuse_only


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Closed(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError


def wait_for(stream: io.StringIO, text: str) -> None:
    end = time.monotonic() + 60
    while text not in stream.getvalue():
        assert time.monotonic() < end, stream.getvalue()
        time.sleep(0.01)


def alive() -> list[str]:
    return [each.name for each in threading.enumerate() if each.name == "clfuse watch"]


def test_a_line_says_memory_and_rates() -> None:
    before = dict.fromkeys(counters, 100)
    found = before | {
        "device_bytes_now": 2_500_000_000, "device_bytes_peak": 3_000_000_000,
        "kernels_launched": 2100, "host_evaluations": 101, "bytes_to_device": 8_000_100,
    }  # fmt: skip
    assert described(before, found, 2.0, 80_000_000_000) == (
        "clfuse: 2.5 GB of 80.0 GB in arrays, 3.0 GB at most;"
        " 1,000 launches/s, 0.5 evaluations by NumPy/s, 4.0 MB/s to the device"
    )
    assert described(found, found, 2.0, None) == (
        "clfuse: 2.5 GB in arrays, 3.0 GB at most; idle"
    )


def test_it_sees_the_memory_of_arrays(xp: ModuleType) -> None:
    with xp.config.override(host_us=0, build_after_ms=0):
        held = xp.linspace(0, 1, 500_000) * 2
        xp.evaluate(held)
        shown = Watch(1000.0, Terminal())
        shown._sample()
        now = xp.stats()["device_bytes_now"]
    assert now >= 4_000_000
    assert f"clfuse: {now / 1e6:.1f} MB of " in shown.line
    assert repr(shown) == shown.line


def test_a_terminal_has_one_line_that_goes() -> None:
    stream = Terminal()
    with Watch(0.01, stream).start() as shown:
        wait_for(stream, "in arrays")
        assert alive()
    assert not alive()
    assert "\n" not in stream.getvalue()
    assert stream.getvalue().endswith(" \r")
    assert shown.line.startswith("clfuse: ")


def test_a_pipe_has_a_line_a_sample() -> None:
    stream = io.StringIO()
    shown = Watch(0.01, stream).start()
    wait_for(stream, "\n")
    shown.stop()
    shown.stop()
    lines = stream.getvalue().splitlines()
    assert lines
    assert all(line.startswith("clfuse: ") for line in lines)


def test_it_ends_where_nobody_reads() -> None:
    shown = Watch(0.01, Closed()).start()
    shown._thread.join(60)
    assert not alive()
    shown.stop()


LEFT_ON = """
import atexit
import clfuse as np

@atexit.register
def say():
    print("watches" if shown._thread.is_alive() else "has ended")

shown = np.watch(every=60)
"""


def test_its_thread_ends_before_the_process_does() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", LEFT_ON], text=True, capture_output=True, timeout=100, check=True
    )
    assert ended.stdout == "has ended\n"


def test_an_error_in_the_block_ends_it(xp: ModuleType) -> None:
    def work() -> None:
        with xp.watch(every=1000):
            raise KeyError("of the block")

    with pytest.raises(KeyError):
        work()
    assert not alive()


@pytest.mark.parametrize("every", [0, -1.0, float("nan")])
def test_seconds_must_be_positive(xp: ModuleType, every: float) -> None:
    with pytest.raises(ValueError, match="must be positive"):
        xp.watch(every=every)


NOTEBOOK = """
    import json, time
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output
    shell = InteractiveShell.instance()
    shell.kernel = object()  # as in Jupyter
    import clfuse as np
    with capture_output() as captured:
        shown = np.watch(every=0.01)
        end = time.monotonic() + 60
        while len(captured.outputs) < 4 and time.monotonic() < end:
            time.sleep(0.01)
        shown.stop()
    outputs = [[each.data, each.transient, each.update] for each in captured.outputs]
    json.dump([outputs, captured.stderr], open("shown.json", "w"))
"""


def test_a_notebook_has_one_output_that_changes(tmp_path: Path) -> None:
    pytest.importorskip("IPython")
    (tmp_path / "program.py").write_text(textwrap.dedent(NOTEBOOK), encoding="utf-8")
    subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, check=True, timeout=120,
        env={**os.environ, "IPYTHONDIR": str(tmp_path)},
    )
    outputs, errors = json.loads((tmp_path / "shown.json").read_text(encoding="utf-8"))
    assert errors == ""
    assert len({transient["display_id"] for _, transient, _ in outputs}) == 1
    assert [is_update for _, _, is_update in outputs] == [False] + [True] * (len(outputs) - 1)
    for data, _, _ in outputs:
        assert "<polyline points=" in data["text/html"]
        assert data["text/plain"].startswith("clfuse: ")
