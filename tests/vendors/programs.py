"""Programs as pytest writes them into a folder, which of them are the same, and batches of them.

A file is the program's OpenCL C below two lines: its class (`classes`) and the compiler's options.

Most of the time that a small kernel takes a compiler is its start: it reads declarations and a
library of built-in functions. So kernels are compiled together, under other names, below a head
that has all that they need: pragmas, files of ``kernels/lib``, lines that instantiate their macros.
A source that is anything else than such a head and one kernel is a batch of its own.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from clfuse.codegen import templates
from clfuse.codegen.lines.expressions import Preamble

__all__ = ["Batch", "Program", "batches", "read", "write"]

#: Kernels of a batch: enough that the compilers' start is little of it, few enough that a failure
#: is soon found and that two processes are busy to the end.
BATCH_KERNELS = 48

_CLASS, _OPTIONS = "// class: ", "// options: "
_INSTANCE = re.compile(r"DEFINE_\w+\(.*\)|typedef .*\b(?P<name>\w+_anywhere)\b.*;")
_KERNEL = re.compile(
    r"\b(?:__kernel|kernel)\b\s*(?:__attribute__\s*\(\(.*?\)\)\)?\s*)?void\s+"
    r"(?:__attribute__\s*\(\(.*?\)\)\)?\s*)?(\w+)\s*\("
)
_RENAMED = re.compile(r"^#define (\w+) (\w+)$", re.MULTILINE)
_DIRECTIVE = re.compile(r"^[ \t]*#", re.MULTILINE)


@dataclass(frozen=True)
class Program:
    """One source with the options it is built with.

    Attributes
    ----------
    source : str
        OpenCL C.
    options : str
        The compiler's.
    kernel_class : str
        See `classes`.
    """

    source: str
    options: str = ""
    kernel_class: str = "raw"

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Its kernels, in order, as compilers see them: long names are defined to be others."""
        renamed = dict(_RENAMED.findall(self.source))
        found = _KERNEL.findall(self.source)
        return tuple(dict.fromkeys([renamed.get(name, name) for name in found]))

    @cached_property
    def parts(self) -> tuple[str, str] | None:
        """(head, kernel named ``K``), where it is these and nothing else."""
        if len(self.names) != 1:
            return None
        (name,) = self.names
        begin = self.source.find("__kernel")
        head, kernel = self.source[:begin], self.source[begin:]
        is_function = begin >= 0 and not _DIRECTIVE.search(kernel) and _is_one_block(kernel)
        if not is_function or re.search(rf"\b{name}\b", head):
            return None
        return head, re.sub(rf"\b{name}\b", "K", kernel)

    @cached_property
    def head(self) -> tuple[str, ...] | None:
        """What stands before the kernel, in parts that may stand before others, too; None where it
        has others."""
        if self.parts is None:
            return None
        rest, found = self.parts[0], []
        while known := next((text for text in _known_parts() if rest.startswith(text)), None):
            found.append(known)
            rest = rest.removeprefix(known)
        lines = rest.splitlines(keepends=True)
        if all(_INSTANCE.fullmatch(line.rstrip("\n")) for line in lines):
            return (*found, *lines)
        return None

    @cached_property
    def canonical(self) -> str:
        """The source with its kernels' names, which say nothing of what they compute, replaced."""
        if self.parts is not None:
            return "".join(self.parts)
        text = self.source
        for number, name in enumerate(self.names):
            text = re.sub(rf"\b{name}\b", f"K{number}", text)
        return text

    @cached_property
    def key(self) -> str:
        """The same for programs that compile to the same, in their class."""
        facts = f"{self.kernel_class}\0{self.options}\0{self.canonical}"
        return hashlib.sha256(facts.encode()).hexdigest()

    @cached_property
    def needs_fp64(self) -> bool:
        """Whether it names a type of double precision, library files aside, which have macros for
        all types."""
        text = self.source
        for part in _known_parts():
            if not part.startswith("#pragma"):
                text = text.replace(part, "")
        return re.search(r"\bdouble\d*\b|cl_khr_fp64", text) is not None


@cache
def _known_parts() -> tuple[str, ...]:
    """Pragmas and library files, as renderers put them above a kernel."""
    preamble = Preamble()
    files = sorted((templates.folder() / "lib").glob("*.cl"))
    preamble.libraries.update(dict.fromkeys([path.name for path in files]))
    return templates.head(preamble, True)


def _is_one_block(text: str) -> bool:
    """Whether a text ends with the first block that it opens."""
    depth = 0
    for found in re.finditer(r"[{}]", text):
        depth += 1 if found[0] == "{" else -1
        if depth == 0:
            return not text[found.end() :].strip()
    return False


@dataclass(frozen=True)
class Batch:
    """Programs as one source; kernel `names[number]` there is `programs[number]`'s.

    A program with several kernels is alone, and `names` are all of its kernels then.
    """

    programs: tuple[Program, ...]
    source: str
    names: tuple[str, ...]

    @property
    def options(self) -> str:
        """The compiler's."""
        return self.programs[0].options

    @property
    def needs_fp64(self) -> bool:
        """Whether any of them does."""
        return any(program.needs_fp64 for program in self.programs)

    def of_name(self, name: str) -> Program:
        """The program that a kernel of this batch is of."""
        if len(self.programs) == 1:
            return self.programs[0]
        return self.programs[self.names.index(name)]


def alone(program: Program) -> Batch:
    """The batch of one program, as it is."""
    return Batch((program,), program.source, program.names)


def batches(programs: Iterable[Program]) -> list[Batch]:
    """All programs, those that can be together."""
    groups: dict[tuple[str, bool], list[Program]] = defaultdict(list)
    made = []
    for program in programs:
        if program.head is None:
            made.append(alone(program))
        else:
            groups[program.options, program.needs_fp64].append(program)
    for group in groups.values():
        # Those with much the same head side by side: none compiles what only others need.
        group.sort(key=lambda program: (program.head, program.key))
        for first in range(0, len(group), BATCH_KERNELS):
            made.append(_together(group[first : first + BATCH_KERNELS]))
    return made


def _together(programs: Sequence[Program]) -> Batch:
    if len(programs) == 1:
        return alone(programs[0])
    names = tuple([f"K{number}" for number in range(len(programs))])
    head: dict[str, None] = {}
    kernels = []
    for name, program in zip(names, programs, strict=True):
        assert program.parts is not None
        assert program.head is not None
        head.update(dict.fromkeys(program.head))
        kernels.append(re.sub(r"\bK\b", name, program.parts[1]))
    files = [part for part in head if part in _known_parts()]
    instances = [part for part in head if part not in _known_parts()]
    return Batch(tuple(programs), "".join(files + instances) + "\n".join(kernels), names)


def write(folder: Path, program: Program) -> None:
    """Add a program to a folder, once; processes may do so side by side."""
    path = folder / f"{program.key[:24]}.cl"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        text = f"{_CLASS}{program.kernel_class}\n{_OPTIONS}{program.options}\n{program.source}"
        path.write_text(text, encoding="utf-8")


def parse(text: str) -> Program:
    """The program of a file's text; its two first lines may be missing."""
    values = {_CLASS: "raw", _OPTIONS: ""}
    for prefix in values:
        if text.startswith(prefix):
            line, _, text = text.partition("\n")
            values[prefix] = line.removeprefix(prefix)
    return Program(text, values[_OPTIONS], values[_CLASS])


def read(folder: Path) -> list[Program]:
    """The programs in a folder, each once, in the order of their keys."""
    found = [parse(path.read_text(encoding="utf-8")) for path in folder.glob("*.cl")]
    return sorted({program.key: program for program in found}.values(), key=lambda one: one.key)
