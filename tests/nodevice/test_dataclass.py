"""`clfuse.dataclass` makes what `dataclasses.dataclass` makes."""

from __future__ import annotations

import copy
import inspect
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


@pytest.mark.parametrize(("ours", "theirs"), PAIRS, ids=["frozen", "mutable"])
def test_plain_classes_take_arguments_as_dataclasses(ours, theirs):
    names = {"__annotations__": {"name": "str", "size": "int"}, "__module__": __name__, "size": 3}
    found, expected = (each(type("Plain", (), dict(names))) for each in (ours, theirs))
    parameters, asked = (inspect.signature(each).parameters for each in (found, expected))
    assert parameters.keys() == asked.keys()
    for call in (lambda kind: kind("a"), lambda kind: kind(size=4, name="b"),
                 lambda kind: replace(kind("a", 5), name="c")):  # fmt: skip
        assert repr(call(found)) == repr(call(expected))
    for call in (lambda kind: kind(), lambda kind: kind(1, 2, 3), lambda kind: kind(1, name=2)):
        with pytest.raises(TypeError) as ours_said:
            call(found)
        with pytest.raises(TypeError) as theirs_said:
            call(expected)
        assert str(ours_said.value) == str(theirs_said.value)
    more = ours(type("More", (found,), {"__annotations__": {"last": "int"}, "last": 1,
                                        "__module__": __name__}))  # fmt: skip
    assert (more("a").name, more("a").size, more("a", 2, 5).last) == ("a", 3, 5)


@pytest.mark.parametrize("decorator", [frozen, mutable])
def test_a_field_without_a_default_follows_none_with_one(decorator):
    with pytest.raises(TypeError, match="non-default argument 'late' follows default argument"):
        decorator(type("Late", (), {"__annotations__": {"size": "int", "late": "int"}, "size": 3,
                                    "__module__": __name__}))  # fmt: skip


@pytest.mark.parametrize(("ours", "theirs"), PAIRS, ids=["frozen", "mutable"])
def test_classes_that_do_more_than_store_do_it(ours, theirs):
    def __post_init__(self):
        self.size += 1

    kinds = [made(each, __post_init__=__post_init__) for each in (ours, theirs)]
    assert [each("a", 4).size for each in kinds] == [5, 5]
    hidden = {"__annotations__": {"name": "str", "rest": "int"}, "__module__": __name__,
              "rest": field(default=7, init=False)}  # fmt: skip
    assert ours(type("Hidden", (), dict(hidden)))("a").rest == 7


@mutable
class Node:
    """One that may hold itself."""

    inner: Any = None


def test_an_object_that_holds_itself_is_shown():
    node = Node()
    node.inner = node
    assert repr(node) == "Node(inner=...)"
    assert pickle.loads(pickle.dumps(Node(4))) == Node(4)
