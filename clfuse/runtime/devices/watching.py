"""`clfuse.watch`: device memory and activity of a program, on a terminal or in a notebook."""

from __future__ import annotations

import atexit
import html
import sys
import threading
import time
from collections import deque
from types import TracebackType
from typing import Any, Final

from clfuse.counters import bytes_text, counters
from clfuse.process import locks
from clfuse.progress import in_notebook

from . import selection

__all__ = ["Watch", "watch"]

SAMPLES: Final = 120
"""That the chart of a notebook shows."""

WIDTH, HEIGHT = 480, 48

LONGEST_S: Final = 2.0
"""Seconds that the thread is waited for, which may be writing to who does not read."""

RATES: Final = {
    "kernels_launched": "launches",
    "host_evaluations": "evaluations by NumPy",
    "programs_built": "builds",
    "tiles": "tiles",
}

BYTES: Final = {
    "bytes_to_device": "to the device",
    "bytes_to_host": "to the host",
    "bytes_spilled": "spilled",
}


class Watch:
    """What `watch` gives: it shows device memory and activity until `stop`, or the end of a block.

    line (str): what was shown last.
    """

    def __init__(self, every: float, stream: Any = None) -> None:
        self.line = ""
        self._every = every
        self._stream = stream
        self._display: Any = None
        self._ended = threading.Event()
        self._lock = locks.make()
        self._memory: deque[int] = deque(maxlen=SAMPLES)
        self._before = dict(counters)
        self._at = time.monotonic()
        self._shown = 0
        self._thread = threading.Thread(target=self._work, name="clfuse watch", daemon=True)

    def start(self) -> Watch:
        """Show, from here on."""
        if in_notebook() and self._stream is None:
            from IPython.display import display

            self._sample()
            self._display = display(self, display_id=True)  # type: ignore[no-untyped-call]
        atexit.register(self._end)
        self._thread.start()
        return self

    def stop(self) -> None:
        """Show no more; the last state stays in a notebook, and goes from a terminal."""
        self._end()
        atexit.unregister(self._end)
        self._sample()
        if self._display is not None:
            self._display.update(self)
            self._display = None
        elif self._shown and self._is_terminal():
            self._write("\r" + " " * self._shown + "\r")
        self._shown = 0

    def _end(self) -> None:
        """End the thread: one that writes while the interpreter ends is ended with the stream's
        lock, which ends the process in "Fatal Python error"."""
        self._ended.set()
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(LONGEST_S)

    def __enter__(self) -> Watch:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        return self.line

    def _repr_html_(self) -> str:
        return f"<div><small>{html.escape(self.line)}</small><br>{self._chart()}</div>"

    def _work(self) -> None:
        while not self._ended.wait(self._every):
            self._sample()
            if self._display is not None:
                self._display.update(self)
            elif self._is_terminal():
                text = self.line.ljust(self._shown)
                self._shown = len(self.line)
                self._write("\r" + text)
            else:
                self._write(self.line + "\n")

    def _sample(self) -> None:
        """Read the counters."""
        with self._lock:
            now, found = time.monotonic(), dict(counters)
            self._memory.append(found["device_bytes_now"])
            self.line = described(self._before, found, max(now - self._at, 1e-9), _room())
            self._before, self._at = found, now

    def _chart(self) -> str:
        """Memory over the last samples, as SVG."""
        samples = list(self._memory)
        most = max([*samples, 1])
        step = WIDTH / (SAMPLES - 1)
        points = " ".join([
            f"{number * step:.1f},{HEIGHT - (HEIGHT - 4) * nbytes / most:.1f}"
            for number, nbytes in enumerate(samples)
        ])  # fmt: skip
        return (
            f'<svg width="{WIDTH}" height="{HEIGHT}" role="img" aria-label="Memory of arrays">'
            f'<polyline points="{points}" fill="none" stroke="#4c78a8" stroke-width="2"/></svg>'
        )

    def _is_terminal(self) -> bool:
        try:
            return bool((self._stream or sys.stderr).isatty())
        except (AttributeError, ValueError):  # there is none, or it is closed
            return False

    def _write(self, text: str) -> None:
        stream = self._stream or sys.stderr
        try:
            stream.write(text)
            stream.flush()
        except (AttributeError, OSError, ValueError):  # nobody reads it any more
            self._ended.set()


def described(
    before: dict[str, int], found: dict[str, int], elapsed_s: float, room: int | None
) -> str:
    """Memory and what has happened in a time, as one line.

    >>> zero = dict.fromkeys(counters, 0)
    >>> now = zero | {"device_bytes_now": 16_000_000, "kernels_launched": 30}
    >>> described(zero, now, 2.0, 8_000_000_000)
    'clfuse: 16.0 MB of 8.0 GB in arrays, 0 B at most; 15 launches/s'
    """
    of = "" if room is None else f" of {bytes_text(room)}"
    parts = []
    for name, what in RATES.items():
        if count := found[name] - before[name]:
            rate = count / elapsed_s
            parts.append(f"{rate:,.0f} {what}/s" if rate >= 1 else f"{rate:.1f} {what}/s")
    for name, what in BYTES.items():
        if nbytes := found[name] - before[name]:
            parts.append(f"{bytes_text(nbytes / elapsed_s)}/s {what}")
    memory = f"{bytes_text(found['device_bytes_now'])}{of} in arrays"
    peak = f"{bytes_text(found['device_bytes_peak'])} at most"
    return f"clfuse: {memory}, {peak}; {', '.join(parts) or 'idle'}"


def _room() -> int | None:
    """Bytes that arrays may take on the devices that were used; None where none was."""
    if not selection.is_any_open():
        return None
    pools = [device.pool for device in selection.listed()]
    return sum([pool.limit_nbytes for pool in pools if pool is not None]) or None


def watch(every: float = 0.5) -> Watch:
    """Show device memory and activity live: in a notebook as a line and a chart below the cell, on
    a terminal as a line of the standard error, elsewhere as a line a sample.

    Parameters
    ----------
    every : float
        Seconds between two samples. Each reads the counters of `stats`: some microseconds.

    Returns
    -------
    Watch
        ``with clfuse.watch():`` ends it with the block, `Watch.stop` at any time.

    Raises
    ------
    ValueError
        `every` is not positive.

    Examples
    --------
    >>> import clfuse as np
    >>> with np.watch(every=60) as shown:
    ...     x = np.arange(4.0) * 2
    >>> shown.line.startswith("clfuse: ")
    True
    """
    if not every > 0:
        raise ValueError(f"watch(every={every!r}): seconds between two samples must be positive")
    return Watch(every).start()
