"""Counts the programs that each test module has built and says so at the end; `conftest` loads it.

Compiling is what the device tests spend their time on where the compilers' caches are empty: 0.2 s
a program. A module that suddenly builds many more shows here.

Two thirds (PoCL) to four fifths (Intel's runtime) of that are the compiler's optimizations. With
``CLFUSE_TEST_OPTIMIZED=some``, as in ci/test, programs have them in the modules of `OPTIMIZED`, one
half on PoCL and the other on other runtimes in those of `BY_HALVES`, and every sixteenth elsewhere.
On simulated devices, whose programs no user of a CPU has, it is every sixteenth but in the modules
of `ASKING`. ``all``, the default, is what users have.

No program may call one of its kernels: GPUs have no such calls, and CPUs' compilers say nothing.
Nor may names be of other letters than ASCII's, or longer than all drivers take.

With ``CLFUSE_TEST_KERNELS=FOLDER`` every kernel that is built for a GPU's schedule is written
there, to be compiled by `tests.vendors`.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

MODULES_SHOWN = 12

OPTIMIZED = frozenset({
    "test_demo", "test_jit", "test_joined_folds", "test_runtime", "test_runtime_programs",
    "test_streaming", "test_tiles",
})
"""Modules whose programs are all built as users have them."""

ASKING = frozenset({"test_runtime", "test_runtime_programs"})
"""Modules with tests of the compilers' options, which look at what the compiler was given."""

BY_HALVES = frozenset({
    "test_fuzz", "test_kernel_sequences", "test_kernels_fuzz", "test_op_rows",
    "test_small_arithmetic", "test_ufuncs",
})
"""Modules of random programs and of all element-wise loops, in which faults of the compilers'
optimizations were found. What another has built in the same process before is not built again."""

UNOPTIMIZED = "-cl-opt-disable"

_WRONG_UNOPTIMIZED = re.compile(r"PoCL ([7-9]|\d\d)\.")
"""Platforms that calculate wrong without optimizations: in PoCL 7.1 with LLVM 21 on AVX-512
``vload8(i, x) + 1`` of long is 0 in its upper half. There all programs are optimized."""

_ATTRIBUTE = re.compile(r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)")
_SKIPPED = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"", re.DOTALL)


def kernels_called(source: str) -> list[str]:
    """The kernels of a program whose names stand anywhere in it but where they are declared.

    >>> kernels_called("__kernel void f(int n) {} __kernel void g(int n) { f(n); }")
    ['f']
    """
    text = _ATTRIBUTE.sub(" ", _SKIPPED.sub(" ", source))
    declared = re.findall(r"\b(?:__)?kernel\s+void\s+(\w+)\s*\(", text)
    return [
        name for name in dict.fromkeys(declared)
        if len(re.findall(rf"(?<![.\w]){name}\s*\(", text)) > declared.count(name)
    ]


MOST_LETTERS = 120
"""Of a name: 96 (`ir.identifiers`), and what is added to it."""

_LONG = re.compile(rf"\w{{{MOST_LETTERS + 1}}}", re.ASCII)


def odd_names(source: str) -> list[str]:
    """Names in a program that are not ASCII's, or too long.

    >>> odd_names("__kernel void \u00c9t\u00e9(int n) {} /* \u00e9 */")
    ['\u00c9t\u00e9']
    """
    if source.isascii() and not _LONG.search(source):
        return []
    words = set(re.findall(r"[^\W\d]\w*", _SKIPPED.sub(" ", source)))
    return sorted(word for word in words if not word.isascii() or len(word) > MOST_LETTERS)


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
    all_optimized : bool
        Whether the compilers optimize all programs.
    """

    def __init__(self, all_optimized: bool = True) -> None:
        self.all_optimized = all_optimized
        self.module = "collection"
        self.built: dict[str, set[str]] = defaultdict(set)
        self.seen: set[str] = set()
        self.elsewhere = 0

    def watch(self) -> None:
        """Look at every program that this process builds."""
        if folder := os.environ.get("CLFUSE_TEST_KERNELS"):
            importlib.import_module("tests.vendors.recording").record(Path(folder))
        program: Any = importlib.import_module("clfuse.runtime.launches.program")
        compile_program = program.compile_program

        def watched(
            context: Any, handle: Any, source: str, options: str, *headers_read: str
        ) -> Any:
            called = kernels_called(source)
            assert not called, f"kernels are called by the program itself: {called}"
            odd = odd_names(source)
            assert not odd, f"names that OpenCL C does not take everywhere: {odd}"
            key = hashlib.sha256(f"{handle.name}\0{options}\0{source}".encode())
            self.built[self.module].add(key.hexdigest()[:16])
            is_pocl = handle.platform.name == "Portable Computing Language"
            is_right = not _WRONG_UNOPTIMIZED.search(handle.platform.version)
            digest = hashlib.sha256(source.encode()).digest()
            if is_right and not self.optimizes(digest, is_pocl=is_pocl):
                options = f"{options} {UNOPTIMIZED}"
            return compile_program(context, handle, source, options, *headers_read)

        program.compile_program = watched

    def optimizes(self, key: bytes, *, is_pocl: bool) -> bool:
        """Whether a program whose source has this hash is optimized here."""
        module = Path(self.module).stem
        is_simulated = bool(os.environ.get("CLFUSE_SIMULATE"))
        if self.all_optimized or module in (ASKING if is_simulated else OPTIMIZED):
            return True
        in_halves = module in BY_HALVES and not is_simulated
        return key[0] % 2 == is_pocl if in_halves else key[0] % 16 == is_pocl

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
