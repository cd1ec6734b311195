"""README and the guide name what there is: pages, headings, files, settings and commands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from clfuse import __main__ as command_line
from clfuse import config

TOP = Path(__file__).parent.parent.parent
GUIDE = TOP / "clfuse" / "guide"
PAGES = sorted(GUIDE.rglob("*.md"))
DOCUMENTS = [TOP / "README.md", TOP / "tests" / "README.md", *PAGES]
LINK = re.compile(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)")
VARIABLE = re.compile(r"\bCLFUSE_[A-Z0-9_]+\b")
# Read by scripts of ours and by tests, not by the library.
OF_SCRIPTS = {
    "CLFUSE_FUZZ_PROGRAMS", "CLFUSE_FUZZ_SEED", "CLFUSE_SIMULATED_TESTS", "CLFUSE_TEST_DEVICE",
    "CLFUSE_TEST_HAND", "CLFUSE_TEST_KERNELS", "CLFUSE_TEST_LONG", "CLFUSE_TEST_MODULE",
    "CLFUSE_TEST_OPTIMIZED", "CLFUSE_TEST_REMEMBERED", "CLFUSE_VENDORS_SECONDS",
}


def names(documents: list[Path]) -> list[str]:
    return [str(document.relative_to(TOP)) for document in documents]


def anchors(document: Path) -> set[str]:
    """The fragments by which a document's headings are linked to, as code hosts make them."""
    headings = re.findall(r"(?m)^#+ (.*)$", document.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=names(DOCUMENTS))
def test_links_lead_to_files_and_headings_that_are_there(document: Path) -> None:
    for path, heading in LINK.findall(document.read_text(encoding="utf-8")):
        target = (document.parent / path).resolve() if path else document
        assert target.exists(), f"{path} is linked to, and is not there"
        assert not heading or heading in anchors(target), f"{path} has no heading {heading}"


def test_every_page_of_the_guide_is_linked_to_from_the_readme() -> None:
    linked = {path for path, _ in LINK.findall(DOCUMENTS[0].read_text(encoding="utf-8"))}
    assert {str(page.relative_to(TOP)) for page in PAGES} <= linked


def test_pages_and_programs_of_the_guide_are_installed() -> None:
    packaging = (TOP / "setup.py").read_text(encoding="utf-8")
    patterns = re.findall(r'"(guide/[^"]*)"', packaging)
    installed = {page for pattern in patterns for page in GUIDE.parent.glob(pattern)}
    assert installed == {*PAGES, *GUIDE.glob("gallery/*.py")}


def test_the_page_of_settings_has_all_of_them() -> None:
    page = (TOP / "clfuse" / "guide" / "settings.md").read_text(encoding="utf-8")
    rows = re.findall(r"(?m)^\| (`CLFUSE.*?) \|", page)
    named = {name for row in rows for name in VARIABLE.findall(row)}
    assert named == {setting.env for setting in config.SETTINGS}


@pytest.mark.parametrize("document", DOCUMENTS, ids=names(DOCUMENTS))
def test_variables_that_are_named_are_settings(document: Path) -> None:
    known = {setting.env for setting in config.SETTINGS} | OF_SCRIPTS
    assert set(VARIABLE.findall(document.read_text(encoding="utf-8"))) <= known


@pytest.mark.parametrize("document", DOCUMENTS, ids=names(DOCUMENTS))
def test_commands_and_files_that_are_named_are_there(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    for script in re.findall(r"\b(?:bash|python) (ci/[\w\-./]+)", text):
        assert (TOP / script).is_file(), script
    for command in re.findall(r"python -m clfuse (\w+)", text):
        assert command in command_line.COMMANDS, command
    for file in re.findall(r"`((?:clfuse|tests|kernels|ci)/[\w\-./]+)`", text):
        assert (TOP / file).exists(), file
    for file in re.findall(r"`((?:source|array_route|launch_route|calls)/\w+\.py)`", text):
        assert (TOP / "clfuse" / "user_kernels" / "language" / file).is_file(), file
    for file in re.findall(r"(?m)^\$ .*pytest .*?(tests/[\w/.]+)", text):
        assert (TOP / file).exists(), file
    for module in re.findall(r"python -m (tests[\w.]*)", text):
        path = TOP / module.replace(".", "/")
        assert path.with_suffix(".py").is_file() or (path / "__main__.py").is_file(), module


@pytest.mark.parametrize("document", DOCUMENTS, ids=names(DOCUMENTS))
def test_lines_that_a_page_changes_are_in_the_named_file(document: Path) -> None:
    for block in re.findall(r"(?ms)^```diff\n(.*?)^```$", document.read_text(encoding="utf-8")):
        head, *lines = block.splitlines()
        source = (TOP / head.removeprefix("--- ")).read_text(encoding="utf-8").splitlines()
        removed = [line[1:] for line in lines if line.startswith("-")]
        assert removed
        assert set(removed) <= set(source), head


def test_nothing_cites_a_document_that_is_not_here() -> None:
    there = {path.name for path in TOP.glob("*.md")} | {page.name for page in PAGES}
    files = [TOP / "setup.py", TOP / "pyproject.toml", *DOCUMENTS]
    for folder in ("clfuse", "kernels", "tests"):
        for suffix in ("py", "pyx", "pxi", "cl", "mako"):
            files += (TOP / folder).rglob(f"*.{suffix}")
    missing = {}
    for path in files:
        text = re.sub(r"https?://\S+", "", path.read_text(encoding="utf-8"))
        cited = set(re.findall(r"(?<![\"/\w.-])([\w-]+\.md)\b(?!\")", text))
        cited |= set(re.findall(r"\bguide/(?:[\w-]+/)*([\w-]+\.md)\b", text))
        if cited - there:
            missing[str(path.relative_to(TOP))] = sorted(cited - there)
    assert missing == {}


def test_the_changelog_has_releases_and_one_line_a_change() -> None:
    text = (TOP / "CHANGELOG.md").read_text(encoding="utf-8")
    releases = re.findall(r"(?m)^## \[(.*?)\](?: - (\d{4}-\d\d-\d\d))?$", text)
    version = re.search(r'version="(.*?)"', (TOP / "setup.py").read_text(encoding="utf-8"))
    assert version
    assert releases[0] == ("Unreleased", "")
    assert releases[1][0] == version[1]
    assert all(date for _, date in releases[1:])
    assert len(releases) == text.count("\n## ")
    groups = set(re.findall(r"(?m)^### (.*)$", text))
    assert groups <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    body = text[text.index("## [Unreleased]"):]
    assert [line for line in body.splitlines() if line and line[0] not in "#-"] == []
