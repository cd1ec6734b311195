"""Reports in IPython and in notebooks: ``%%clfuse_report``, and what a `clfuse.profile` shows.

``%load_ext clfuse`` comes here. Both show the page that ``python -m clfuse report`` writes, of one
cell or of one block; a terminal, which shows no pages, gets its figures as text.
"""

from __future__ import annotations

import html
import os
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from clfuse import events
from clfuse.engine import profile

from ..substitution import Substitution, project_folders
from .collector import Collector
from .copying import copy_rate
from .page import render
from .places import NOWHERE, Places
from .summary import Circumstances, Summary, summarized
from .text import figures
from .writing import outcome_of, trouble_with

__all__ = ["CellReport", "Notebook", "load", "unload"]

MAGIC: Final = "clfuse_report"

USAGE: Final = f"%%{MAGIC} [FILE]: run the cell, and show a report of it; FILE gets the page, too"


class CellReport:
    """The report of a cell or of a block, as a notebook or a terminal shows it.

    page (str): the HTML page.
    """

    def __init__(self, summary: Summary) -> None:
        self.page = render(summary)
        self._text = figures(summary)

    def _repr_html_(self) -> str:
        # A page of its own inside the notebook's: neither one's styles and scripts reach the other.
        return (
            f'<iframe srcdoc="{html.escape(self.page)}" sandbox="allow-scripts" width="100%"'
            ' height="640" style="border: 1px solid #8884"></iframe>'
        )

    def __repr__(self) -> str:
        return self._text

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file."""
        Path(path).write_text(self.page, encoding="utf-8")


class Notebook:
    """One session of IPython whose cells are reported.

    Parameters
    ----------
    shell : IPython.core.interactiveshell.InteractiveShell
    """

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self._copy_rates: dict[Any, float | None] = {}
        self._numbered: dict[str, str] = {}
        self._project = Substitution(project_folders(os.getcwd()))
        # One table for all cells: what a cell has recorded may be computed in a later one.
        self.places = Places(self._is_users)

    def _is_users(self, path: str) -> bool:
        if self.title(path):
            return True
        return not path.startswith("<") and self._project.is_users(path)

    def title(self, path: str) -> str:
        """How the cell of this file name is called; nothing where it is none."""
        found = self.shell.compile.format_code_name(path)
        return "" if found is None else self._numbered.get(path) or str(found[1])

    def report(self, line: str, cell: str) -> None:
        """``%%clfuse_report``: run a cell, and show a report of it."""
        from IPython.display import display

        file = _file_of(line)
        # Lines have the numbers that they have in the notebook. A magic has to come first.
        text = cell if cell.startswith("%%") else f"# %%{MAGIC} {line}".rstrip() + f"\n{cell}"
        transformed = self.shell.transform_cell(text)
        script = self.shell.compile.cache(transformed, self.shell.execution_count, raw_code=text)
        # IPython's releases differ: a cell that a magic runs has its own number or the next one's.
        self._numbered[script] = f"In[{len(self.shell.user_ns['In']) - 1}]"
        collector = Collector(self.places)
        collector.start()
        try:
            result = self.shell.run_cell(text)
        finally:
            collector.stop()
        error = result.error_before_exec or result.error_in_exec
        about = self._about(f"%%{MAGIC}", script, collector, outcome_of(error))
        shown = CellReport(summarized(collector, about))
        if file:
            shown.save(file)
        display(shown)  # type: ignore[no-untyped-call]

    @contextmanager
    def profiled(self) -> Iterator[Callable[[], str]]:
        """A companion of `clfuse.profile`."""
        collector = Collector(self.places)
        number = self.places.find(sys._getframe(1))
        if number == NOWHERE or any(isinstance(each, Collector) for each in events.listeners):
            # It is in no cell, or in one that is reported itself.
            yield str
            return
        script, _ = self.places.known[number]
        found: list[str] = []
        collector.start()
        try:
            yield lambda: found[0]
        finally:
            collector.stop()
        about = self._about("clfuse.profile()", script, collector)
        found.append(CellReport(summarized(collector, about))._repr_html_())

    def _about(
        self, what: str, script: str, collector: Collector, outcome: str = ""
    ) -> Circumstances:
        paths = {script, *[path for path, _ in self.places.known]}
        titles = {path: title for path in paths if (title := self.title(path))}
        devices = collector.devices
        return Circumstances(
            f"{what} in {titles.get(script, script)}", script, outcome,
            copy_rate=self._copy_rate(devices[0]) if devices else None, titles=titles,
        )  # fmt: skip

    def _copy_rate(self, device: Any) -> float | None:
        """That of the device, measured once."""
        if device not in self._copy_rates:
            self._copy_rates[device] = copy_rate(device)
        return self._copy_rates[device]


def _file_of(line: str) -> str:
    """The file that a magic's line names, or nothing."""
    from IPython.core.error import UsageError

    words = shlex.split(line)
    if len(words) > 1 or any(word.startswith("-") for word in words):
        raise UsageError(USAGE)
    if not words:
        return ""
    file = os.path.expanduser(words[0])
    problem = trouble_with(file)
    if problem:
        raise UsageError(f"%%{MAGIC} {words[0]}: {problem}")
    return file


_loaded: Final[dict[Any, Notebook]] = {}


def load(shell: Any) -> None:
    """What ``%load_ext clfuse`` does."""
    if shell in _loaded:
        return
    found = _loaded[shell] = Notebook(shell)
    shell.register_magic_function(found.report, "cell", MAGIC)
    profile.companions.append(found.profiled)


def unload(shell: Any) -> None:
    """What ``%unload_ext clfuse`` does."""
    found = _loaded.pop(shell, None)
    if found is None:
        return
    shell.magics_manager.magics["cell"].pop(MAGIC, None)
    profile.companions.remove(found.profiled)
