"""A pytest plugin that writes each failure to a file as it happens, shortly: ``-p
tests.support.failing``.

A driver that ends the process, or a time limit, takes pytest's own summary with it. The file is
named by ``CLFUSE_FAILURES``: a dot a test that passed, an s for one that was skipped, and for each
failure its name and last lines.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest

VARIABLE: Final = "CLFUSE_FAILURES"

LINES: Final = 14
"""Of a failure's text."""


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if "PYTEST_XDIST_WORKER" in os.environ:  # the process that collects the reports writes
        return
    text = ""
    if report.failed:
        lines = str(report.longrepr).splitlines()[-LINES:]
        text = "\n".join([f"\nFAILED {report.nodeid} [{report.when}]", *lines, ""])
    elif report.skipped:
        text = "s"
    elif report.when == "call":
        text = "."
    if text:
        with Path(os.environ[VARIABLE]).open("a", encoding="utf-8") as file:
            file.write(text)
