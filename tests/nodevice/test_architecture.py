"""The page about architecture has the picture that the code makes, and names what there is."""

from __future__ import annotations

import re

from tests import architecture

TOP = architecture.PAGE.parents[3]
QUESTION = "| Where "
NAMED = re.compile(r"`((?:clfuse|kernels)/[\w./]+)`(?:,? `(\w+)`)?")


def test_the_picture_is_what_the_code_makes() -> None:
    hint = "run: python -m tests.architecture"
    assert architecture.committed() == architecture.picture(), hint


def test_the_picture_has_every_package_and_a_way_to_each() -> None:
    boxes = architecture.boxes()
    packages = {path.parent.name for path in (TOP / "clfuse").glob("*/__init__.py")}
    assert packages - {"_core", "process"} <= set(boxes)  # which are on the ground
    assert boxes[0] == architecture.GROUND
    assert architecture.below("tools") == set(boxes) - {"tools", "dask"}


def test_an_arrow_that_others_imply_is_not_drawn() -> None:
    assert "ir" in architecture.imported_boxes("engine")
    assert "ir" in architecture.below("codegen")
    assert "ir" not in architecture.arrows("engine")
    assert set(architecture.arrows("engine")) >= {"codegen", "policy"}


def test_five_questions_are_answered_by_a_file_and_its_names() -> None:
    text = architecture.PAGE.read_text(encoding="utf-8")
    answers = [line for line in text.splitlines() if line.startswith(QUESTION)]
    assert len(answers) == 5
    for answer in answers:
        named = NAMED.findall(answer)
        assert named, answer
        for file, name in named:
            source = (TOP / file).read_text(encoding="utf-8")
            defined = re.search(rf"(?m)^\s*(?:def|class|cdef \w+) {name}\b", source)
            assert not name or defined, f"{file} does not define {name}"
