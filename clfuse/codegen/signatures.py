"""The parameter list of a user kernel: parsed, and rewritten so that pointers begin at an offset.

One launch of several calls, and a call on part of an array, need an offset that the kernel's author
did not provide for. A kernel must not call another kernel: what becomes of its local variables and
attributes is the compiler's choice, and on GPUs it is no function that can be called. So the text
of the kernel itself is changed, but only the parameter list and the first line of the body:

    __kernel void scale(__global float *x, const float c) { x[get_global_id(0)] *= c; }

    __kernel void scale(__global void *a0, const long o0, const float c)
    { __global float *x = (__global void *)((__global char *)a0 + 4 * o0);
      x[get_global_id(0)] *= c; }

Every definition of the name is changed: a program may have several, of which the preprocessor
chooses one. `find` gives None for what cannot be changed with certainty.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Final

from clfuse.dataclass import frozen

_TOKEN: Final = re.compile(
    r"(?P<comment>//(?:\\\r?\n|[^\n])*|/\*.*?\*/)"
    r"|(?P<directive>\#(?:\\\r?\n|/\*.*?\*/|[^\n])*)"
    r"|(?P<literal>\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|\.?\d(?:[eEpP][-+]|[\w.])*)"
    r"|(?P<word>[A-Za-z_$][\w$]*)"
    r"|(?P<mark><<|>>|&&|\|\||[-<>=!]=|->|\S)",
    re.DOTALL,
)
_WORD: Final = re.compile(r"[A-Za-z_$][\w$]*")
_DEFINED: Final = re.compile(r"#\s*define\s+([A-Za-z_$][\w$]*)(?:(\()|([^\n]*))")
_DEEPEST: Final = 8
"""Macros in macros that are looked into for an address space."""

_SPACES: Final = {
    "__global": "__global", "global": "__global",
    "__constant": "__constant", "constant": "__constant",
    "__local": "__local", "local": "__local",
}

_ADDED: Final = frozenset(
    "void char uchar short ushort int uint long ulong float float2 double double2 half vload_half"
    " get_global_id const restrict __global __constant".split()
)
"""Words in what is added to a kernel: no macro may give them another meaning."""


@frozen
class Formal:
    """One parameter: its words and marks without attributes; `place` is the name among them.

    expanded: the words with what macros certainly stand for.
    space: the address space of what a pointer points to; empty for a number.
    """

    words: tuple[str, ...]
    place: int
    expanded: tuple[str, ...]
    space: str

    @property
    def is_constant(self) -> bool:
        """Whether ``const`` stands in front of a pointer's first ``*`` or ``[``."""
        marks = [place for place, word in enumerate(self.expanded) if word in "*["]
        return "const" in self.expanded[: min(marks, default=0)]

    @property
    def is_restricted(self) -> bool:
        """Whether it is a pointer that promises to be the only one."""
        return bool({"restrict", "__restrict"} & set(self.expanded))

    def declaration(self) -> str:
        """The parameter as a variable: an array is a pointer to its first element."""
        words = list(self.words)
        name = words[self.place]
        if words[self.place + 1 : self.place + 2] == ["["]:
            end, depth = self.place + 1, 1
            while depth:
                end += 1
                depth += (words[end] == "[") - (words[end] == "]")
            words[self.place : end + 1] = ["(", "*", name, ")"]
        return " ".join(words)

    def type(self) -> str:
        """The type of a number."""
        dropped = {"const", "volatile", "private", "__private", "register"}
        words = [word for place, word in enumerate(self.words) if place != self.place]
        return " ".join([word for word in words if word not in dropped])


@frozen
class Replaced:
    """What stands for a parameter: parameters, and the variable's initial value; both are made
    of the parameter, since definitions may differ in its type."""

    parameters: Callable[[Formal], Sequence[str]]
    value: Callable[[Formal], str]


@frozen
class Definition:
    """A definition's parameters, and where in the source their list and the body's inside are."""

    formals: tuple[Formal, ...]
    texts: tuple[str, ...]
    begin: int
    end: int
    body: int


@frozen
class Found:
    """A kernel in its source.

    definitions: all of the same number of parameters, with pointers at the same places.
    names: every name in the source.
    """

    source: str
    definitions: tuple[Definition, ...]
    prototypes: tuple[tuple[int, int], ...]
    names: frozenset[str]

    @property
    def count(self) -> int:
        """Of the parameters."""
        return len(self.definitions[0].formals)

    def unused(self, word: str) -> str:
        """A name that is nowhere in the source."""
        while word in self.names:
            word += "_"
        return word

    def changed(self, replaced: Sequence[Replaced | None], before: str = "") -> str:
        """The source with other parameters: None keeps one as it is. `before` is a statement in
        front of the variables. Lines stay where they are, for the compiler's messages."""
        edits = [(begin, end, _lines_of(self.source[begin:end])) for begin, end in self.prototypes]
        for definition in self.definitions:
            declared: list[str] = []
            begun = [before] if before else []
            rows = zip(definition.formals, definition.texts, replaced, strict=True)
            for formal, text, change in rows:
                if change is None:
                    declared.append(text)
                    continue
                declared += change.parameters(formal)
                begun.append(f"{formal.declaration()} = {change.value(formal)};")
            old = self.source[definition.begin : definition.end]
            listed = ", ".join(declared)
            more = _lines_of(old)[len(_lines_of(listed)) :]
            edits.append((definition.begin, definition.end, listed + more))
            edits.append((definition.body, definition.body, f" {' '.join(begun)}"))
        text = self.source
        for begin, end, new in sorted(edits, reverse=True):
            text = text[:begin] + new + text[end:]
        return text


@lru_cache(maxsize=256)
def find(source: str, name: str) -> Found | None:
    """The kernel `name` in a source; None where its parameters cannot be changed with certainty.

    That is where a parameter list has directives or macros for whole parameters, where nothing
    tells a pointer's address space, where something else in the source has the kernel's name
    (another kernel calls it), or where a macro hides a word that is added.

    >>> found = find("kernel void f(global const int *x, local int (*held)[4], int n) {}", "f")
    >>> [(formal.space, formal.words[formal.place]) for formal in found.definitions[0].formals]
    [('__global', 'x'), ('__local', 'held'), ('', 'n')]
    """
    tokens = []
    names: set[str] = set()
    macros: dict[str, str | None] = {}
    for token in _TOKEN.finditer(source):
        kind = token.lastgroup
        if kind == "directive":
            names.update(_WORD.findall(token[0]))
            for macro, is_function, text in _DEFINED.findall(token[0]):
                # Of several definitions the preprocessor chooses one.
                known = macros.setdefault(macro, None if is_function else text)
                macros[macro] = known if known == text and not is_function else None
        elif kind == "word":
            names.add(token[0])
        if kind != "comment":
            tokens.append((token[0], token.start(), token.end(), kind))
    if _ADDED & macros.keys() or name in macros:
        return None
    if any(kind == "directive" and name in _WORD.findall(text) for text, _, _, kind in tokens):
        return None
    definitions: list[Definition] = []
    prototypes: list[tuple[int, int]] = []
    for place, (text, _, _, kind) in enumerate(tokens):
        if kind != "word" or text != name:
            continue
        begin = _begin_of(tokens, place)
        closed = _closed(tokens, place + 1)
        if begin is None or closed is None:
            return None
        after = _without_attributes(tokens, closed + 1)
        if after is None:
            return None
        if tokens[after][0] == ";":
            prototypes.append((tokens[begin][1], tokens[after][1]))
            continue
        inside = tokens[place + 2 : closed]
        formals = _formals(inside, macros)
        if tokens[after][0] != "{" or formals is None:
            return None
        texts = tuple([" ".join([word for word, *_ in part]) for part in _parts(inside)])
        definitions.append(Definition(
            formals, texts, tokens[place + 1][2], tokens[closed][1], tokens[after][2]
        ))
    shapes = {tuple([formal.space for formal in each.formals]) for each in definitions}
    if len(shapes) != 1:
        return None
    return Found(source, tuple(definitions), tuple(prototypes), frozenset(names))


_Token = tuple[str, int, int, "str | None"]


def _begin_of(tokens: Sequence[_Token], place: int) -> int | None:
    """Where the declaration of a kernel begins, whose name is at `place`; None if it is none."""
    begin = place
    while begin and tokens[begin - 1][0] not in (";", "}") and tokens[begin - 1][3] != "directive":
        begin -= 1
        if tokens[begin][0] == "{":
            return None
    words = [text for text, *_ in tokens[begin:place]]
    if "void" not in words or not {"kernel", "__kernel"} & set(words):
        return None
    return begin


def _closed(tokens: Sequence[_Token], place: int) -> int | None:
    """Where the parenthesis that opens at `place` closes; None where none opens, or with directives
    inside."""
    if place >= len(tokens) or tokens[place][0] != "(":
        return None
    depth = 0
    for end in range(place, len(tokens)):
        text, _, _, kind = tokens[end]
        if kind == "directive":
            return None
        depth += (text == "(") - (text == ")")
        if not depth:
            return end
    return None


def _without_attributes(tokens: Sequence[_Token], place: int) -> int | None:
    """The first token from `place` on that is part of no attribute; None where there is none."""
    while place < len(tokens) and tokens[place][0] in ("__attribute__", "__attribute"):
        closed = _closed(tokens, place + 1)
        if closed is None:
            return None
        place = closed + 1
    return place if place < len(tokens) else None


def _parts(inside: Sequence[_Token]) -> list[list[_Token]]:
    """A parameter list at its commas."""
    parts: list[list[_Token]] = [[]]
    depth = 0
    for token in inside:
        depth += (token[0] in "([{") - (token[0] in ")]}")
        if token[0] == "," and not depth:
            parts.append([])
        else:
            parts[-1].append(token)
    if len(parts) == 1 and [text for text, *_ in parts[0]] in ([], ["void"]):
        return []
    return parts


def _formals(
    inside: Sequence[_Token], macros: Mapping[str, str | None]
) -> tuple[Formal, ...] | None:
    found = []
    for part in _parts(inside):
        words: list[str] = []
        place = 0
        while place < len(part):
            if part[place][0] in ("__attribute__", "__attribute"):
                closed = _closed(part, place + 1)
                if closed is None:
                    return None
                place = closed
            else:
                words.append(part[place][0])
            place += 1
        formal = _formal(words, macros)
        if formal is None:
            return None
        found.append(formal)
    return tuple(found)


def _formal(words: list[str], macros: Mapping[str, str | None]) -> Formal | None:
    depth, name = 0, -1
    for place, word in enumerate(words):
        depth += (word == "[") - (word == "]")
        if not depth and _WORD.fullmatch(word):
            name = place
    # One word is a type without a name, or a macro for all of it.
    if name < 1 or depth or words[name] in macros:
        return None
    expanded = tuple([each for word in words for each in _expanded(word, macros)])
    spaces = [_SPACES[word] for word in expanded if word in _SPACES]
    is_pointer = "*" in expanded or "[" in expanded
    if len(spaces) != is_pointer or ("(" in expanded and not is_pointer):
        return None
    return Formal(tuple(words), name, expanded, spaces[0] if spaces else "")


def _expanded(word: str, macros: Mapping[str, str | None], depth: int = 0) -> list[str]:
    """What a macro without arguments stands for, if that is certain; else the word."""
    text = macros.get(word)
    if text is None or depth == _DEEPEST:
        return [word]
    inner = [token[0] for token in _TOKEN.finditer(text) if token.lastgroup != "comment"]
    return [each for part in inner for each in _expanded(part, macros, depth + 1)]


def _lines_of(text: str) -> str:
    """As many line ends as a text has."""
    return "\n" * text.count("\n")
