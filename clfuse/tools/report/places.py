"""Places: the statements of the program, by number, and what else is on the stack above them."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, Final

import clfuse
from clfuse.user_frames import OWN_FOLDERS

__all__ = ["NOWHERE", "PYTHON", "STATES", "WAIT", "Places"]

NOWHERE: Final = -1
"""The number of what no statement of the program has asked for."""

PYTHON: Final = "python"

WAIT: Final = "wait"

STATES: Final[dict[str, str]] = {
    PYTHON: "Python, other packages, and small arrays at the call",
    "record": "clfuse: recording, looking plans up, launching",
    "plan": "clfuse: planning and writing kernels",
    "build": "waiting for the driver's compiler",
    "start": "opening devices",
    "numpy": "NumPy computes what was recorded",
    "fallback": "NumPy computes what no kernel does",
    "library": "a library on the host computes",
    WAIT: "waiting for the device",
    "copy": "copying between host and device",
}
"""What the host does -> in words."""

FLUSH: Final = "flush"
"""What was recorded is evaluated because there is enough of it; the program has not asked."""

_OF_FUNCTIONS: Final = {
    ("runtime/devices/device.py", "finish"): WAIT,
    ("runtime/memory/buffers.py", "download"): "copy",
    ("runtime/memory/buffers.py", "write"): "copy",
    ("runtime/memory/buffers.py", "_write_and_wait"): "copy",
    ("runtime/memory/buffers.py", "_copied"): "copy",
    ("dispatch/host_call.py", "host_call"): "fallback",
}

_OF_MODULES: Final = {
    "runtime/launches/program.py": "build",
    "runtime/drivers/compiler.py": "build",
    "runtime/drivers/": "start",
    "runtime/devices/": "start",
    "runtime/context/": "",
    "runtime/host/": "library",
    "schedule/": "plan",
    "codegen/": "plan",
    "interpreter/": "numpy",
    "engine/plans.py": "plan",
    "engine/auto_flush.py": FLUSH,
    "tools/": "",
    "": "record",
}
"""The begin of a module's path in the package -> what it does; the longest counts. Of what says
nothing, the caller does."""

MOST_STEPS: Final = 32
"""Instructions of one function whose lines Python looks up: it reads the table of lines from its
begin each time, which of a long function takes 100 us. Then the table is read as a whole."""

_PACKAGE: Final = os.path.dirname(os.path.abspath(str(clfuse.__file__))) + os.sep


def _state(code: CodeType) -> str:
    """What a function of clfuse's does for the program; nothing where it is not clfuse's."""
    if not code.co_filename.startswith(_PACKAGE):
        return ""
    path = code.co_filename[len(_PACKAGE) :].replace(os.sep, "/")
    found = _OF_FUNCTIONS.get((path, code.co_name))
    if found is None:
        found = _OF_MODULES[max((each for each in _OF_MODULES if path.startswith(each)), key=len)]
    return found


class _Lines:
    """The lines of one function's instructions."""

    def __init__(self, code: CodeType) -> None:
        self._code = code
        self._looks = 0
        self._starts: list[int] = []
        self._lines: list[int] = []

    def line_of(self, frame: FrameType) -> int:
        """The line at which a frame of the function is."""
        if self._looks < MOST_STEPS:
            self._looks += 1
            return frame.f_lineno
        if not self._starts:
            table = [(start, line) for start, _, line in self._code.co_lines()]
            self._starts = [start for start, _ in table]
            # What has no line of its own belongs to the line before it.
            line = self._code.co_firstlineno
            for _, own in table:
                line = line if own is None else own
                self._lines.append(line)
        return self._lines[bisect_right(self._starts, frame.f_lasti) - 1]


class Places:
    """The statements of the program that were met, as numbers.

    Parameters
    ----------
    is_users : callable
        Whether a file belongs to the program.

    known (list of (str, int)): number -> file and line.
    """

    def __init__(self, is_users: Callable[[str], bool]) -> None:
        self.known: list[tuple[str, int]] = []
        self._numbers: dict[tuple[str, int], int] = {}
        self._is_users = is_users
        # By `id`, as code objects are compared by their contents; they are kept, so that an `id` is
        # of no other one.
        self._codes: dict[int, tuple[CodeType, bool, str]] = {}
        self._steps: dict[tuple[int, int], int] = {}
        self._tables: dict[int, _Lines] = {}

    def _about(self, code: CodeType) -> tuple[CodeType, bool, str]:
        filename = code.co_filename
        is_users = not filename.startswith(OWN_FOLDERS) and self._is_users(filename)
        found = self._codes[id(code)] = code, is_users, "" if is_users else _state(code)
        return found

    def _number(self, frame: FrameType) -> int:
        code = frame.f_code
        key = id(code), frame.f_lasti
        number = self._steps.get(key)
        if number is None:
            table = self._tables.get(id(code))
            if table is None:
                table = self._tables[id(code)] = _Lines(code)
            place = code.co_filename, table.line_of(frame)
            number = self._numbers.get(place)
            if number is None:
                number = self._numbers[place] = len(self.known)
                self.known.append(place)
            self._steps[key] = number
        return number

    def find(self, frame: FrameType | None) -> int:
        """The statement that has called `frame`, or is in it: the innermost of the program's."""
        codes = self._codes
        while frame is not None:
            code = frame.f_code
            about = codes.get(id(code)) or self._about(code)
            if about[1]:
                return self._number(frame)
            frame = frame.f_back
        return NOWHERE

    def look(self, frame: Any) -> tuple[int, str]:
        """As `find`, and what the host does for it (`STATES`)."""
        codes = self._codes
        state = ""
        while frame is not None:
            code = frame.f_code
            about = codes.get(id(code)) or self._about(code)
            if about[1]:
                return self._number(frame), state or PYTHON
            state = state or ("record" if about[2] == FLUSH else about[2])
            frame = frame.f_back
        return NOWHERE, state or PYTHON

    def find_asker(self, frame: FrameType | None) -> tuple[int, bool]:
        """As `find`, and whether the statement has asked for values: evaluations of what was
        recorded begin by themselves, too."""
        codes = self._codes
        has_asked = True
        while frame is not None:
            code = frame.f_code
            about = codes.get(id(code)) or self._about(code)
            if about[1]:
                return self._number(frame), has_asked
            has_asked = has_asked and about[2] != FLUSH
            frame = frame.f_back
        return NOWHERE, has_asked
