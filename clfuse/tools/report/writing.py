"""Reports of programs that ``python -m clfuse run`` runs: begun, ended, and written to a file."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from .collector import Collector

__all__ = ["Report", "outcome_of", "trouble_with"]


COPY_SHARE: Final = 0.01
"""The part of the run's time that copies may take, which are measured to be compared with."""


def trouble_with(path: str) -> str:
    """Why a file cannot be written; nothing where it can."""
    is_new = not os.path.lexists(path)
    try:
        with open(path, "ab"):
            pass
    except OSError as error:
        return error.strerror or str(error)
    if is_new:
        os.unlink(path)
    return ""


class Report:
    """The report of one run.

    path: of the file that is written.
    command: how the program is called.
    script: its file, or what stands for it in tracebacks.
    is_users: whether another file belongs to the program.
    texts: the sources of what is in no file.
    """

    def __init__(
        self,
        path: str,
        command: str,
        script: str,
        is_users: Callable[[str], bool],
        texts: Mapping[str, str],
    ) -> None:
        self.path = os.path.abspath(path)
        self._command = command
        self._script = script
        self._texts = dict(texts)

        def is_of_program(file: str) -> bool:
            if file == script:
                return True
            return not file.startswith("<") and is_users(file)

        self._collector = Collector(is_of_program)

    def start(self) -> None:
        """The program begins."""
        self._collector.start()

    def stop(self) -> None:
        """The program has ended."""
        self._collector.stop()

    def write(self, outcome: str, unused: str) -> None:
        """Write the page.

        outcome: how the program has ended; empty where it came to its end.
        unused: why nothing of the program used clfuse; empty where something did.

        Raises OSError: it cannot be written.
        """
        from .copying import copy_rate
        from .page import render
        from .summary import Circumstances, summarized

        devices = self._collector.devices
        elapsed_s = (self._collector.end_ns - self._collector.start_ns) / 1e9
        circumstances = Circumstances(
            self._command, self._script, outcome, unused,
            copy_rate(devices[0], COPY_SHARE * elapsed_s) if devices else None, self._texts,
        )  # fmt: skip
        page = render(summarized(self._collector, circumstances))
        Path(self.path).write_text(page, encoding="utf-8")

    @property
    def is_silent(self) -> bool:
        """Whether clfuse did nothing while the program ran, and the program does not have it."""
        seen = self._collector
        if any(seen.after[name] != seen.before.get(name, 0) for name in seen.after):
            return False
        namespace = vars(sys.modules.get("__main__", sys))
        return not any(
            getattr(value, "__name__", "").partition(".")[0] == "clfuse"
            for value in list(namespace.values())
            if isinstance(value, type(sys))
        )


def outcome_of(error: BaseException | None) -> str:
    """How a program has ended, where it did not come to its end."""
    if error is None or (isinstance(error, SystemExit) and not error.code):
        return ""
    if isinstance(error, SystemExit):
        return f"it has ended itself with {error.code!r}"
    if isinstance(error, KeyboardInterrupt):
        return "it was interrupted"
    text = str(error)
    return type(error).__name__ + (f": {text}" if text else "")
