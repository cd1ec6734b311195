"""Counts the programs that each test module has built and says so at the end; `conftest` loads it.

Compiling is what the device tests spend their time on where the compilers' caches are empty: 0.2 s
a program on PoCL. A module that suddenly builds many more shows here.
"""

from __future__ import annotations

import hashlib
import importlib
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

MODULES_SHOWN = 12


class Compiling:
    """Which programs were asked of the compiler during which module's tests.

    Attributes
    ----------
    module : str
        Whose tests run now.
    built : dict
        For each module the programs, by a hash of source and options.
    elsewhere : int
        Programs that two processes of pytest-xdist have both asked for.
    """

    def __init__(self) -> None:
        self.module = "collection"
        self.built: dict[str, set[str]] = defaultdict(set)
        self.seen: set[str] = set()
        self.elsewhere = 0

    def watch(self) -> None:
        """Look at every program that this process builds."""
        program: Any = importlib.import_module("clfuse.runtime.program")
        compile_program = program.compile_program

        def watched(
            context: Any, handle: Any, source: str, options: str, builtins_read: str = ""
        ) -> Any:
            key = hashlib.sha256(f"{handle.name}\0{options}\0{source}".encode())
            self.built[self.module].add(key.hexdigest()[:16])
            return compile_program(context, handle, source, options, builtins_read)

        program.compile_program = watched

    def add(self, built: dict[str, list[str]]) -> None:
        """Take over what another process has built."""
        mine = set().union(*built.values())
        self.elsewhere += len(self.seen & mine)
        self.seen |= mine
        for module, programs in built.items():
            self.built[module].update(programs)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.module = item.nodeid.partition("::")[0]
        return (yield)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["built"] = {module: sorted(keys) for module, keys in self.built.items()}

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self.add(getattr(node, "workeroutput", {}).get("built", {}))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self.built:
            return
        distinct = set().union(*self.built.values())
        text = f"{len(distinct)} programs built"
        if self.elsewhere:
            text += f", {self.elsewhere} of them in more than one process"
        terminalreporter.section(text)
        before: set[str] = set()
        largest = sorted(self.built.items(), key=lambda pair: -len(pair[1]))
        for module, programs in largest[:MODULES_SHOWN]:
            new = len(programs - before)
            terminalreporter.write_line(f"{len(programs):5d} {module} ({new} in none above)")
            before |= programs
