"""Templates are kept as modules between processes, and are the same with them and without."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from clfuse.render import templates

NAME = "map.cl.mako"


@pytest.fixture(autouse=True)
def anew() -> Iterator[None]:
    templates._template.cache_clear()
    before = templates._kept_in
    yield
    templates.keep_in(before)
    templates._template.cache_clear()


def code_of(place: Path | None) -> str:
    templates.keep_in(place)
    templates._template.cache_clear()
    return str(templates._template(NAME).code)


def test_a_template_is_kept_and_found_again(tmp_path: Path) -> None:
    first = code_of(tmp_path / "new")
    (kept,) = (tmp_path / "new").glob("*.py")
    written = kept.stat().st_mtime_ns
    assert code_of(tmp_path / "new") == first
    assert kept.stat().st_mtime_ns == written


def test_another_text_is_kept_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code_of(tmp_path / "kept")
    changed = tmp_path / "kernels"
    changed.mkdir()
    (changed / NAME).write_text("something else")
    monkeypatch.setattr(templates, "folder", lambda: changed)
    templates.keep_in(tmp_path / "kept")
    templates._template.cache_clear()
    assert templates.render(NAME, {}) == "something else"
    assert len(list((tmp_path / "kept").glob("*.py"))) == 2


@pytest.mark.parametrize("damage", [b"", b"def (", b"\xff\x00", b"_magic_number = 0\n"])
def test_a_damaged_module_is_not_used(tmp_path: Path, damage: bytes) -> None:
    plain = templates.folder() / NAME
    code_of(tmp_path)
    (kept,) = tmp_path.glob("*.py")
    kept.write_bytes(damage)
    templates.keep_in(tmp_path)
    templates._template.cache_clear()
    assert templates._template(NAME).source == plain.read_text(encoding="utf-8")
    assert callable(templates._template(NAME).callable_)


def test_a_folder_that_cannot_be_made_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    assert "render_body" in code_of(tmp_path / "file" / "below")
