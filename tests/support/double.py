"""Tells tests that need double precision on a device that has none; `conftest` skips them.

There clfuse refuses float64 and complex128 with an error of its own (`DeviceDtypeError`), where
NumPy has a value, a warning or another error. A test that was refused and then failed compared what
cannot be compared, also where it had caught the error itself or Python's own functions had made
another one of it. What refuses is tested where `DeviceDtypeError` is named: there failures count.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from tests.support.agreement import needs_double

NAME = "DeviceDtypeError"
SAID = "the device has no double precision"


class Refusals:
    """The errors about double precision that were made while a test ran."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.is_watching = False

    def begin(self) -> None:
        """Forget those of the test before."""
        self.made.clear()
        errors = sys.modules.get("clfuse.errors")
        if errors is not None and not self.is_watching:
            self.is_watching = True
            self._watch(errors)

    def _watch(self, errors: Any) -> None:
        class_ = getattr(errors, NAME)
        made = self.made

        def noted(self: Exception, *arguments: object) -> None:
            super(class_, self).__init__(*arguments)
            made.append(str(self))

        class_.__init__ = noted

    def reason(self, error: BaseException, item: pytest.Item) -> str | None:
        """What a test that failed with this error was refused, if it was."""
        if needs_double(error):
            return str(error)
        found = self.made[0] if self.made else _of_another_process(error)
        if found is None or NAME in item.path.read_text(encoding="utf-8"):
            return None
        return found


def _of_another_process(error: BaseException) -> str | None:
    """The line of a test's message, which is what a process printed, with the refusal in it."""
    printed = error.stderr if isinstance(error, subprocess.CalledProcessError) else None
    text = f"{error}\n{printed or ''}"
    lines = [line for line in text.splitlines() if NAME in line or SAID in line]
    return lines[0] if lines else None
