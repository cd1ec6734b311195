"""Generators of names never meet in one: each family of names has letters of its own."""

from __future__ import annotations

import pytest

from clfuse.codegen.joined import join
from clfuse.codegen.kernels import render
from clfuse.codegen.lines import addresses, names
from clfuse.ir import build
from clfuse.ir.nodes import Node
from clfuse.schedule.dataflow import storage_roots
from clfuse.target.traits import DeviceTraits
from tests.support.recording import (
    FLOAT64,
    TRAITS,
    array,
    call,
    kernels,
    number,
    planned,
    roll,
    softmax,
)
from tests.support.scopes import declared_twice, families

GPU = DeviceTraits(schedule="gpu", vector_bytes=16, work_items=4096, compute_units=16)

OF_ONE_VECTOR = {"h", "l", "u", "v", names.UNIFORM}
"""What is declared anew for the last elements of a row, in a block of its own, and what was hoisted
out of loops."""


def joined(rows: int, columns: int) -> Node:
    """A row above an array."""
    return build.concatenate([array(1, columns), array(rows, columns)], 0)


def folded(value: Node, axis: int, name: str = "add") -> Node:
    return build.reduce(name, value, (axis,), FLOAT64)


def mean(value: Node, axis: int) -> Node:
    return call("divide", folded(value, axis), number(value.shape[axis]))


PROGRAMS = {
    "mean of joined rows": lambda: mean(joined(20, 10), 1),
    "most of joined rows": lambda: call("divide", folded(joined(20, 10), 1, "maximum"), number(2)),
    "columns of joined rows": lambda: call("sqrt", mean(joined(200, 100), 0)),
    "best of joined rows": lambda: build.arg_reduce("argmax", joined(20, 100), (1,)),
    "rolled": lambda: call("add", roll(array(40, 30), 3, 1), roll(array(40, 30), 2, 0)),
    "softmax": lambda: softmax(array(100, 70)),
    "softmax of joined rows": lambda: softmax(joined(100, 70)),
    "large sum": lambda: folded(array(4_000_000), 0),
    "running": lambda: call("multiply", build.scan("add", joined(20, 100), 1, FLOAT64), number(3)),
    "running down": lambda: build.scan("add", joined(100, 20), 0, FLOAT64),
}


def sources(name: str, traits: DeviceTraits) -> list[str]:
    schedule = planned(PROGRAMS[name](), traits=traits)
    found = [render(each, traits, storage_roots(schedule)) for each in kernels(schedule)]
    if traits.schedule == "cpu" and len(found) > 1:
        found.append(join(found))
    return [each.source for each in found]


@pytest.mark.parametrize("traits", [TRAITS, GPU], ids=["cpu", "gpu"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_every_name_is_of_one_family_and_is_declared_once(
    program: str, traits: DeviceTraits
) -> None:
    for source in sources(program, traits):
        twice = declared_twice(source)
        assert {name for name in twice if name.rstrip("0123456789_") not in OF_ONE_VECTOR} == set()
        numbered = {letters.rstrip("_") for letters in families(source)}  # n0_1: of the second part
        unknown = numbered - names.FAMILIES.keys() - {"done", "chunks", "chunk_length", "pieces"}
        assert not unknown, f"{sorted(unknown)}: list them in clfuse/codegen/lines/names.py"


def test_two_generators_that_meet_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addresses, "WITHIN", names.EPILOGUE)
    found = [declared_twice(source) for source in sources("mean of joined rows", TRAITS)]
    assert any(name.startswith(names.EPILOGUE) for twice in found for name in twice)


def test_what_is_declared_twice_is_read_from_the_text() -> None:
    source = """
    #define A const int a0 = 1;
    static float f(const float p0, float *p1) { return p0; }
    static float g(const float p0) { float p1 = p0; return p1; }
    __kernel void k(__global const float *restrict a0, const int c0, const int n0)
    {
        const int x0 = c0, y1 = (int)n0;  // const int x0
        for (int j0 = 0, v0 = 0; j0 < n0; j0++) { const float c0 = a0[j0]; { const int y1 = 3; } }
        for (int j0 = 0; j0 < 3; j0++) a0[j0] = (float)x0;
        { const int2 z9 = (int2)(x0, y1); }
        const int z9 = 4, x0 = 5;
    }
    """
    assert declared_twice(source) == {"c0", "y1", "x0"}
    assert families(source) == {"p", "a", "c", "n", "x", "y", "j", "v", "z"}


def test_letters_of_families_have_no_numbers() -> None:
    assert not any(character.isdigit() for letters in names.FAMILIES for character in letters)
