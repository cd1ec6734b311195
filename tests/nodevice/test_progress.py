"""Bars: when they are shown, by whom, and what they cost before."""

from __future__ import annotations

import io
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator

import pytest

from clfuse import progress
from clfuse.config import override
from clfuse.progress import Bar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    """Stands for `time` in the module: the time is what a test says."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(progress, "time", found)
    return found


@pytest.fixture
def begin(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Terminal]]:
    """Puts a terminal in the place of the standard error; to be called by the test, as pytest has
    its own there when that begins."""
    pytest.importorskip("tqdm")

    def put() -> Terminal:
        found = Terminal()
        monkeypatch.setattr(sys, "stderr", found)
        return found

    yield put
    assert not progress._shown


def test_nothing_is_drawn_in_two_seconds(clock: Clock, begin: Callable[[], Terminal]) -> None:
    terminal = begin()
    with Bar("doing it", 10) as bar:
        for done in range(10):
            clock.now += 0.19
            bar.at(done)
    assert terminal.getvalue() == ""


def test_a_bar_shows_how_much_is_done(clock: Clock, begin: Callable[[], Terminal]) -> None:
    terminal = begin()
    with Bar("doing it", 10, " parts") as bar:
        clock.now += 2.5
        bar.at(4)
        assert "clfuse: doing it:  40%" in terminal.getvalue()
        assert "4/10 [00:02<" in terminal.getvalue()
        clock.now += 0.05
        bar.at(5)
        assert "5/10" not in terminal.getvalue(), "not more often than every tenth of a second"
        clock.now += 0.1
        bar.at(6)
        assert "6/10" in terminal.getvalue()
    assert terminal.getvalue().split("\r")[-2].isspace(), "and is gone afterwards"


def test_what_has_no_parts_shows_its_time(clock: Clock, begin: Callable[[], Terminal]) -> None:
    terminal = begin()
    with Bar("waiting") as bar:
        clock.now += 3
        bar.at()
    assert "\rclfuse: waiting 00:03" in terminal.getvalue()


def test_one_bar_is_shown_at_a_time(clock: Clock, begin: Callable[[], Terminal]) -> None:
    terminal = begin()
    with Bar("outside", 4) as outer:
        clock.now += 3
        outer.at(1)
        with Bar("inside", 7) as inner:
            clock.now += 3
            inner.at(5)
    assert "outside" in terminal.getvalue()
    assert "inside" not in terminal.getvalue()


def test_an_error_takes_the_bar_away(clock: Clock, begin: Callable[[], Terminal]) -> None:
    terminal = begin()
    def work() -> None:
        with Bar("doing it", 4) as bar:
            clock.now += 3
            bar.at(1)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()
    assert terminal.getvalue().split("\r")[-2].isspace()


@pytest.mark.parametrize(("setting", "is_terminal", "expected"), [
    ("auto", True, True), ("auto", False, False), ("on", False, True), ("off", True, False),
])  # fmt: skip
def test_pipes_have_none_unless_asked_for(
    setting: str, is_terminal: bool, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal() if is_terminal else io.StringIO())
    with override(progress=setting):
        assert progress.is_wanted() == expected


def test_without_a_standard_error_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = io.StringIO()
    closed.close()
    for stream in (None, closed):
        monkeypatch.setattr(sys, "stderr", stream)
        assert not progress.is_wanted()


def test_other_threads_have_none(begin: Callable[[], Terminal]) -> None:
    begin()
    found: list[bool] = []
    thread = threading.Thread(target=lambda: found.append(progress.is_wanted()))
    thread.start()
    thread.join()
    assert found == [False]
    assert progress.is_wanted()


def test_without_tqdm_nothing_is_shown(
    clock: Clock, begin: Callable[[], Terminal], monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = begin()
    monkeypatch.setitem(sys.modules, "tqdm", None)
    with Bar("doing it", 4) as bar:
        clock.now += 3
        bar.at(1)
    assert terminal.getvalue() == ""
    with override(progress="on"), Bar("doing it", 4) as bar:
        clock.now += 3
        with pytest.warns(UserWarning, match="pip install tqdm"):
            bar.at(1)
        clock.now += 3
        bar.at(2)  # says so once
    monkeypatch.setattr(progress, "_is_warned", [])


def test_tqdm_is_imported_when_it_draws() -> None:
    """And starts no thread."""
    program = """
import sys, threading
from clfuse import progress
sys.stderr.isatty = lambda: True
with progress.Bar("doing it", 4) as bar:
    bar.at(1)
    assert "tqdm" not in sys.modules
    progress.AFTER_S = 0
with progress.Bar("doing it", 4) as bar:
    bar.at(1)
print("tqdm" in sys.modules, threading.active_count())
"""
    pytest.importorskip("tqdm")
    finished = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert finished.stdout == "True 1\n"
