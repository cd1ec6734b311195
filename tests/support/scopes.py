"""Which names in OpenCL C are declared where they are there already: two generators that meet in a
name.

Compilers refuse what is declared twice in one scope. What is declared again in a scope within the
first one's is another variable, and they say nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_TOKEN = re.compile(r"[A-Za-z_]\w*|\d[\w.]*|\S")
_TYPE = re.compile(r"(?:u?(?:char|short|int|long)|half|float|double|bool)\d*(?:_anywhere)?$")
_BETWEEN = frozenset(("*", "restrict", "const", "volatile", "__restrict"))
_NUMBERED = re.compile(r"[A-Za-z_]+?\d")


def declared_twice(source: str) -> set[str]:
    """Numbered names that are declared where this scope or an outer one has them; indices are left
    out."""
    return {name for name, is_known in _declared(source)
            if is_known and _NUMBERED.match(name) and not re.fullmatch(r"i\d+", name)}


def families(source: str) -> set[str]:
    """The letters of all numbered names that are declared."""
    return {re.split(r"\d", name)[0] for name, _ in _declared(source) if _NUMBERED.match(name)}


def _declared(source: str) -> Iterator[tuple[str, bool]]:
    """Every declared name, and whether it is there already."""
    lines = [line for line in source.splitlines() if not line.lstrip().startswith("#")]
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", "\n".join(lines), flags=re.DOTALL)
    tokens = _TOKEN.findall(text)
    scopes: list[set[str]] = [set()]
    ends: list[tuple[str, int]] = []  # what closes each scope, at which depth of parentheses
    depth = 0
    place = 0
    while place < len(tokens):
        token = tokens[place]
        if token == "(":
            is_head = len(scopes) == 1 and depth == 0 and tokens[place - 1].isidentifier()
            if is_head or tokens[place - 1] == "for":
                scopes.append(set())
                ends.append(("statement", depth))
            depth += 1
        elif token == ")":
            depth -= 1
        elif token == "{":
            scopes.append(set())
            ends.append(("}", depth))
        elif token == "}" or token == ";":
            if token == "}" and ends and ends[-1][0] == "}":
                scopes.pop()
                ends.pop()
            while ends and ends[-1] == ("statement", depth):
                scopes.pop()
                ends.pop()
        elif _TYPE.match(token) and tokens[place - 1] != "." and not token[0].isdigit():
            names, place = _names(tokens, place + 1, in_list=depth > 0 and _in_head(tokens, place))
            for name in names:
                yield name, any(name in scope for scope in scopes)
                scopes[-1].add(name)
            continue
        place += 1


def _in_head(tokens: list[str], place: int) -> bool:
    """Whether the innermost open parenthesis is that of a parameter list."""
    depth = 0
    for at in range(place - 1, -1, -1):
        depth += (tokens[at] == ")") - (tokens[at] == "(")
        if depth < 0:
            return tokens[at - 1] != "for"
    return False


def _names(tokens: list[str], place: int, in_list: bool) -> tuple[list[str], int]:
    """The names that one declaration of a type declares, and where to go on."""
    start = place
    while tokens[place] in _BETWEEN:
        place += 1
    if not tokens[place].isidentifier() or tokens[place + 1] not in ("=", ";", ",", ")", "["):
        return [], start
    names = [tokens[place]]
    if in_list:
        return names, place + 1
    depth = 0
    while tokens[place] != ";" or depth:
        token = tokens[place]
        depth += (token in "([{") - (token in ")]}")
        if depth < 0:
            break
        if token == "," and depth == 0 and tokens[place + 1].isidentifier():
            names.append(tokens[place + 1])
        place += 1
    return names, place
