"""`clfuse.dataclass` makes what `dataclasses.dataclass` makes."""

from __future__ import annotations

import copy
import pickle
from dataclasses import dataclass, field, fields, replace
from typing import Any

import pytest

from clfuse.dataclass import frozen, mutable

ANNOTATIONS = {"name": "str", "size": "int", "notes": "list", "seen": "dict"}


def made(decorator: Any, **more: Any) -> Any:
    names = {
        "__annotations__": ANNOTATIONS, "__module__": __name__,
        "__qualname__": "Piece", "__doc__": "A piece.", "size": 3,
        "notes": field(default_factory=list, compare=False, repr=False),
        "seen": field(default_factory=dict, hash=False),
    }  # fmt: skip
    return decorator(type("Piece", (), names | more))


PAIRS = [
    (frozen, dataclass(slots=True, unsafe_hash=True)),
    (mutable, dataclass(slots=True)),
]


@pytest.mark.parametrize(("ours", "theirs"), PAIRS, ids=["frozen", "mutable"])
def test_objects_are_compared_and_shown_as_dataclasses(ours, theirs):
    calls = [("a",), ("a", 3), ("a", 4), ("b",), ("a", 3, [1]), ("a", 3, [], {"x": 1})]
    found, expected = made(ours), made(theirs)
    assert [each.name for each in fields(found)] == [each.name for each in fields(expected)]
    for one in calls:
        mine, its = found(*one), expected(*one)
        assert repr(mine) == repr(its)
        assert repr(replace(mine, size=9)) == repr(replace(its, size=9))
        assert copy.copy(mine) == mine
        for other in calls:
            assert (mine == found(*other)) is (its == expected(*other)), (one, other)
        assert mine != its
        assert mine != one


def test_frozen_objects_have_equal_hashes_if_they_are_equal():
    kind = made(frozen)
    assert hash(kind("a")) == hash(kind("a", 3, [1], {"x": 1})) != hash(kind("a", 4))
    assert {kind("a"): 1}[kind("a")] == 1
    one_field = frozen(type("One", (), {"__annotations__": {"x": "int"}, "__module__": __name__}))
    assert hash(one_field(5)) == hash(one_field(5)) != hash(one_field(6))
    assert one_field(5) == one_field(5) != one_field(6)


def test_mutable_objects_have_no_hash():
    with pytest.raises(TypeError, match="unhashable"):
        hash(made(mutable)("a"))


@pytest.mark.parametrize(("ours", "theirs"), PAIRS, ids=["frozen", "mutable"])
def test_what_a_class_defines_itself_stays(ours, theirs):
    own = {"__repr__": lambda self: "mine", "__eq__": lambda self, other: True,
           "__hash__": lambda self: 7}  # fmt: skip
    for each in (made(ours, **own), made(mutable, **own)):
        assert (repr(each("a")), each("a") == 3, hash(each("a"))) == ("mine", True, 7)


@mutable
class Node:
    """One that may hold itself."""

    inner: Any = None


def test_an_object_that_holds_itself_is_shown():
    node = Node()
    node.inner = node
    assert repr(node) == "Node(inner=...)"
    assert pickle.loads(pickle.dumps(Node(4))) == Node(4)
