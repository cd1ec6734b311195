"""Names in OpenCL C that a user wrote: which a text uses, which it declares, and renaming.

Nothing is parsed but what it takes: comments, strings and numbers are told from names, members
(``v.x``) from what stands alone, and declarations outside of braces from what is in them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final

KEYWORDS: Final = frozenset(
    "auto bool break case char const constant continue default do double else enum event_t extern"
    " float for global goto half if image1d_t image2d_t image3d_t inline int kernel local long"
    " private read_only register restrict return sampler_t short signed sizeof static struct"
    " switch typedef uchar uint ulong union unsigned ushort void volatile while write_only"
    " __constant __global __kernel __local __private size_t ptrdiff_t intptr_t uintptr_t".split()
)
"""Words that OpenCL C (3.0, 6.1.9) has a meaning for."""

TEXTS_KEPT: Final = 256
"""Texts of which is known what they declare; a program that makes ever other ones has many."""

_TOKEN: Final = re.compile(
    r"(?P<comment>//[^\n]*|/\*.*?\*/)"
    r"|(?P<literal>\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|\.?\d(?:[eEpP][-+]|[\w.])*)"
    r"|(?P<dot>\.|->)\s*(?P<member>[A-Za-z_]\w*)"
    r"|(?P<name>[A-Za-z_]\w*)",
    re.DOTALL,
)

_DIRECTIVE: Final = re.compile(r"^[ \t]*#(?:\\\r?\n|[^\n])*", re.MULTILINE)
_ATTRIBUTE: Final = re.compile(r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)")


def words(text: str) -> set[str]:
    """The names that stand alone in a text.

    >>> sorted(words("y = v.x * 1.f; // as n"))
    ['v', 'y']
    """
    return {found["name"] for found in _TOKEN.finditer(text) if found["name"]}


def without_comments(text: str) -> str:
    """C without its comments."""
    return _TOKEN.sub(lambda found: " " if found["comment"] else found[0], text)


def rename_words(text: str, names: Mapping[str, str], members: frozenset[str] = frozenset()) -> str:
    """`text` with other names; members of structures keep theirs, but for those in `members`.

    >>> rename_words("T y = 2.T + s.T;", {"T": "double"})
    'double y = 2.T + s.T;'
    """
    if not names:
        return text

    def other(found: re.Match[str]) -> str:
        if found["name"]:
            return names.get(found["name"], found["name"])
        member = found["member"]
        if member in members:
            return f"{found['dot']}{names.get(member, member)}"
        return found[0]

    return _TOKEN.sub(other, text)


@lru_cache(TEXTS_KEPT)
def macros(preamble: str) -> str:
    """What the macros of a preamble are defined as: names in it belong to where it is used."""
    return "\n".join([
        line[0] for line in _DIRECTIVE.finditer(without_comments(preamble))
        if re.match(r"\s*#\s*define\b", line[0])
    ])


_DEFINED: Final = re.compile(r"^\s*#\s*define\s+(\w+)", re.MULTILINE)


@lru_cache(TEXTS_KEPT)
def defined_macros(text: str) -> frozenset[str]:
    """The macros that a text defines.

    >>> sorted(defined_macros("#define SQ(x) ((x) * (x))\\ny = SQ(x); // #define NONE"))
    ['SQ']
    """
    return frozenset(_DEFINED.findall(macros(text)))


def require_name(name: str) -> str:
    """`name`, if it is a C identifier."""
    if not isinstance(name, str):
        raise TypeError(f"kernel name {name!r}: expected a str")
    if not name.isidentifier() or not name.isascii():
        raise ValueError(f"kernel name {name!r}: expected a C identifier")
    return name


def require_text(**texts: object) -> None:
    """Raise TypeError where one of these is no str; their keywords are what the error calls them.
    """
    for what, given in texts.items():
        if not isinstance(given, str):
            raise TypeError(f"{what}: {given!r}; expected a str")


@lru_cache(TEXTS_KEPT)
def declared_names(preamble: str) -> frozenset[str]:
    """The macros, functions, types, constants and variables that a preamble declares.

    >>> text = "#define A 1\\nenum { B, C = 2 };\\nstatic float f(float x) { return x; }"
    >>> sorted(declared_names(text))
    ['A', 'B', 'C', 'f']
    """
    defines = macros(preamble)
    text = _ATTRIBUTE.sub(" ", _DIRECTIVE.sub(" ", without_comments(preamble)))
    found = set(_DEFINED.findall(defines))
    for macro in re.findall(r"^\s*#\s*define\s+(\w+)\(", defines, re.MULTILINE):
        use = re.compile(rf"\b{macro}\s*\(([^()]*)\)")
        if "##" not in defines:  # what it declares has one of its arguments as its name
            found.update(*[words(given) for given in use.findall(_outside(text))])
        text = use.sub(" ", text)
    for declaration in _declarations(text):
        found.update(_declared_by(declaration))
    return frozenset(found - KEYWORDS)


@lru_cache(TEXTS_KEPT)
def members(preamble: str) -> frozenset[str]:
    """Names in the braces of a preamble's structures, those of its members among them.

    They are told from vectors' (``v.x``): where a name is declared outside too, both are renamed.

    >>> sorted(members("struct p { float lo, hi; }; float lo(struct p q) { return q.lo; }"))
    ['float', 'hi', 'lo']
    """
    text = without_comments(preamble)
    inside = re.findall(r"\b(?:struct|union)\b\s*\w*\s*\{([^{}]*)\}", text)
    return frozenset(words("\n".join(inside)))


def _declarations(text: str) -> Iterator[str]:
    """The declarations outside of all braces; a function's with its body."""
    depth = 0
    start = 0
    is_function = False
    for place, letter in enumerate(text):
        if letter == "{" and depth == 0:
            is_function = text[start:place].rstrip().endswith(")")
        depth += (letter in "({[") - (letter in ")}]")
        if depth == 0 and (letter == ";" or (letter == "}" and is_function)):
            yield text[start:place]
            start = place + 1
            is_function = False


def _declared_by(declaration: str) -> Iterator[str]:
    yield from re.findall(r"\b(?:struct|union|enum)\s+(\w+)\s*\{", declaration)
    for constants in re.findall(r"\benum\b\s*\w*\s*\{([^{}]*)\}", declaration):
        yield from re.findall(r"(?:^|,)\s*(\w+)", constants)
    outside = _outside(declaration)
    function = re.match(r"[^=(]*?(\w+)\s*\(", outside)
    if function is not None:
        yield function[1]
        return
    for declarator in outside.split(","):
        names = re.findall(r"[A-Za-z_]\w*", declarator.split("=")[0])
        yield from names[-1:]


def _outside(text: str) -> str:
    """A text without what is in its braces and brackets.

    >>> _outside("int x[3] = {1, 2}, y").split()
    ['int', 'x', '=', ',', 'y']
    """
    found, depth = [], 0
    for letter in text:
        depth -= letter in "}]"
        if depth == 0:
            found.append(" " if letter in "{}[]" else letter)
        depth += letter in "{["
    return "".join(found)
