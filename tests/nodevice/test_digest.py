"""`ci/digest`, by which `ci/test` knows what has passed before: all files count but documents."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

DIGEST = Path(__file__).parent.parent.parent / "ci" / "digest"

pytestmark = pytest.mark.skipif(
    shutil.which("git") is None or os.name != "posix", reason="it is written for Git and bash"
)


def test_documents_alone_leave_the_digest_as_it_is(tmp_path: Path) -> None:
    for path, text in {
        "ci/digest": DIGEST.read_text(encoding="utf-8"),
        "clfuse/guide/adding.md": "a page that a test reads",
        "clfuse/guide/settings.md": "another one",
        "clfuse/code.py": "x = 1",
        "tests/device/test_page.py": 'PAGE = "adding.md"',
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    (tmp_path / ".gitignore").write_text("/.venv\n", encoding="utf-8")
    (tmp_path / ".venv").symlink_to(sys.prefix)
    for command in (["init", "-q"], ["add", "-A"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    seen: list[str] = []

    def is_new(**variables: str) -> bool:
        done = subprocess.run(
            ["bash", "ci/digest"], cwd=tmp_path, env={**os.environ, **variables},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        found = done.stdout.strip()
        assert len(found) == 64
        known = found in seen
        seen.append(found)
        return not known

    assert is_new()
    (tmp_path / "clfuse/guide/settings.md").write_text("changed", encoding="utf-8")
    assert not is_new()
    (tmp_path / "clfuse/guide/adding.md").write_text("changed", encoding="utf-8")
    assert is_new()
    (tmp_path / "clfuse/code.py").write_text("x = 2", encoding="utf-8")
    assert is_new()
    (tmp_path / "clfuse/new.py").write_text("x = 3", encoding="utf-8")
    assert is_new()
    assert is_new(CLFUSE_HOST_US="7")
    (tmp_path / "clfuse/new.py").unlink()
    (tmp_path / "clfuse/code.py").write_text("x = 1", encoding="utf-8")
    (tmp_path / "clfuse/guide/adding.md").write_text("a page that a test reads", encoding="utf-8")
    assert not is_new()
