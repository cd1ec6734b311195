"""Bars for what takes long, on terminals and in notebooks: the package tqdm draws them.

    clfuse: waiting for the device 00:07

Nothing is shown, imported or looked up before `AFTER_S` have passed. Whoever waits or goes through
parts asks in between (`Bar.at`): there is no thread. One bar is shown at a time, the outermost.
"""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType
from typing import Any, Final

from .config import settings
from .errors import SettingWarning, warn_user

__all__ = ["AFTER_S", "Bar", "in_notebook", "is_wanted"]

AFTER_S = 2.0
"""Seconds after which a bar is shown."""

EVERY_S: Final = 0.1
"""Seconds between two of its states."""

WITHOUT_TOTAL: Final = "{desc} {elapsed}"

_shown: Final[list[Bar]] = []

_is_warned: Final[list[bool]] = []


def is_wanted() -> bool:
    """Whether there is somebody who would see a bar."""
    if settings.progress == "off" or threading.current_thread() is not threading.main_thread():
        return False
    if settings.progress == "on" or in_notebook():
        return True
    try:
        return bool(sys.stderr.isatty())
    except (AttributeError, ValueError):  # there is none, or it is closed
        return False


def in_notebook() -> bool:
    """Whether a kernel of Jupyter's runs the program."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and getattr(shell, "kernel", None) is not None


class Bar:
    """How far something is, for the length of a block.

    Parameters
    ----------
    what : str
        What is done: "waiting for the device".
    total : float, optional
        Parts that there are; None where only the time is known.
    unit : str
        Of the parts; "B" for bytes.
    """

    __slots__ = ("_begin", "_drawn", "_next", "_total", "_unit", "_what")

    def __init__(self, what: str, total: float | None = None, unit: str = "it") -> None:
        self._what, self._total, self._unit = what, total, unit
        self._drawn: Any = None
        self._begin = time.monotonic()
        self._next = self._begin + AFTER_S

    def __enter__(self) -> Bar:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self in _shown:
            _shown.remove(self)
        if self._drawn is not None:
            self._drawn.close()

    def at(self, done: float = 0.0) -> None:
        """So many parts are done."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + EVERY_S
        if _shown and _shown[0] is not self:
            _shown[0]._refresh()
            return
        if self._drawn is None:
            if not is_wanted() or (drawn := self._made(now)) is None:
                self._next = float("inf")
                return
            _shown.append(self)
            self._drawn = drawn
        self._drawn.n = done
        self._drawn.refresh()

    def _refresh(self) -> None:
        if self._drawn is not None:
            self._drawn.refresh()

    def _made(self, now: float) -> Any:
        """A bar of tqdm's that has begun when this one has; None where it is not installed."""
        try:
            drawing = _class_of_bars()
        except ImportError:
            if settings.progress == "on" and not _is_warned:
                _is_warned.append(True)
                warn_user(
                    "CLFUSE_PROGRESS=on: bars are drawn by tqdm, which is not installed"
                    " (pip install tqdm)",
                    SettingWarning,
                )
            return None
        drawn = drawing(
            desc=f"clfuse: {self._what}",
            total=self._total,
            unit=self._unit,
            unit_scale=self._unit == "B",
            bar_format=WITHOUT_TOTAL if self._total is None else None,
            leave=False,
            delay=1e-9,  # or else it is drawn at once, as one that begins now
        )
        drawn.start_t -= now - self._begin
        return drawn


def _class_of_bars() -> Any:
    """tqdm's class, without its thread that looks after bars; in notebooks that of widgets, where
    these are installed."""
    if in_notebook():
        try:
            import ipywidgets  # noqa: F401
            from tqdm.notebook import tqdm
        except ImportError:
            from tqdm import tqdm
    else:
        from tqdm import tqdm
    return type("Drawn", (tqdm,), {"monitor_interval": 0})
