"""``%load_ext clfuse``: reports of cells and of profiled blocks, as IPython shows them."""

from __future__ import annotations

import html
import json
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.reported import Page

pytest.importorskip("IPython")
pytestmark = pytest.mark.clfuse_only

SESSION = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
shell = InteractiveShell.instance(colors="nocolor")
found = []
for cell in json.load(open("cells.json")):
    with capture_output() as captured:
        shell.run_cell(cell, store_history=True)
    shown = [each.data for each in captured.outputs]
    found.append({"out": captured.stdout, "err": captured.stderr, "shown": shown})
json.dump(found, open("shown.json", "w"))
"""

BEGIN = """\
import clfuse as np
def wave(x):
    return np.sin(x) * 2
x = np.linspace(0, 1, 300_000)
late = np.exp(x)"""


def session(folder: Path, *cells: str) -> list[dict[str, Any]]:
    """Of each cell what it writes and shows."""
    (folder / "cells.json").write_text(json.dumps(cells), encoding="utf-8")
    (folder / "session.py").write_text(textwrap.dedent(SESSION), encoding="utf-8")
    subprocess.run(
        [sys.executable, "session.py"], cwd=folder, check=True, timeout=300,
        env={**os.environ, "CLFUSE_HOST_US": "0", "IPYTHONDIR": str(folder)},
    )
    found: list[dict[str, Any]] = json.loads((folder / "shown.json").read_text(encoding="utf-8"))
    return found


def page_of(shown: Sequence[dict[str, str]]) -> Page:
    """The page in the frame that is shown last."""
    text = shown[-1]["text/html"]
    frame = re.search(r'<iframe srcdoc="([^"]*)"', text)
    assert frame is not None, text[:200]
    return Page(html.unescape(frame[1]))


def sections(page: Page) -> list[str]:
    return [str(attributes["id"]) for attributes, _ in page.find("section")]


def line_of(page: Page, text: str) -> str:
    """What the page says of the line with this text."""
    return next(said for _, said in page.find("tr") if text in said)


def test_a_cells_report_has_the_parts_of_a_scripts(tmp_path: Path) -> None:
    cell = "%%clfuse_report page.html\ny = wave(x)\nprint(float(y.sum()))\nfloat(late.max())"
    *_, found = session(tmp_path, "%load_ext clfuse", BEGIN, cell)
    assert re.match(r"\d+\.\d+\nOut\[3\]: 2\.718", found["out"])
    (report,) = found["shown"]
    (tmp_path / "script.py").write_text(BEGIN + "\nprint(wave(x).sum())\n", encoding="utf-8")
    subprocess.run(
        [sys.executable, "-m", "clfuse", "report", "script.py"], cwd=tmp_path, check=True,
        timeout=300, capture_output=True, env={**os.environ, "CLFUSE_HOST_US": "0"},
    )
    script = Page((tmp_path / "script.report.html").read_text(encoding="utf-8"))
    page = page_of([report])
    assert sections(page) == sections(script) != []
    ((_, title),) = page.find("title")[:1]
    assert title == "clfuse report: %%clfuse_report in In[3]"
    # Lines are numbered as in the cell, and other cells have theirs.
    ((_, asks),) = page.find("tr", id="f0-3")
    assert "print(float(y.sum()))" in asks
    assert "asks for values once" in asks
    assert "in a kernel with" in line_of(page, "return np.sin(x) * 2")
    assert "In[2]" in [text for _, text in page.find("h3")]
    assert (tmp_path / "page.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    text = report["text/plain"]
    assert "In[2]:3" in text
    assert re.search(r"kernels [\d.]+ [mu]s in \d launches", text)  # GPUs fold in two steps
    assert re.search(r" 3  print\(float", text)


def test_what_an_earlier_cell_recorded_is_that_cells(tmp_path: Path) -> None:
    """The numbers of statements are the session's: a later report knows an earlier one's."""
    one = "%%clfuse_report\nheld = np.exp(x) * 3\nother = float(np.cos(x).sum())"
    *_, found = session(
        tmp_path, "%load_ext clfuse", BEGIN, one, "%%clfuse_report\ntotal = float(held.sum())"
    )
    page = page_of(found["shown"])
    assert "in a kernel with" in line_of(page, "held = np.exp(x) * 3")


def test_a_profile_shows_the_page_of_its_block(tmp_path: Path) -> None:
    block = "with np.profile() as times:\n    z = float(wave(x).sum())\ndisplay(times)"
    before, during, _, after = session(
        tmp_path, f"{BEGIN}\n{block}", f"%load_ext clfuse\n{block}", "%unload_ext clfuse", block
    )
    page = page_of(during["shown"])
    assert sections(page) == ["advised", "lines", "time", "kernels", "plans"]
    assert "asks for values once" in line_of(page, "z = float(wave(x).sum())")
    for each in (before, during, after):
        assert re.match(r"kernel +launches +ms +GB/s\n", each["shown"][-1]["text/plain"])
    for each in (before, after):
        assert each["shown"][-1]["text/html"].startswith("<pre>kernel ")


def test_a_profile_in_a_reported_cell_leaves_the_page_to_it(tmp_path: Path) -> None:
    block = "with np.profile() as times:\n    z = float(wave(x).sum())\ndisplay(times)"
    cell = f"%%clfuse_report\n{block}"
    *_, found = session(tmp_path, "%load_ext clfuse", BEGIN, cell)
    profiled, _ = found["shown"]
    assert profiled["text/html"].startswith("<pre>kernel ")
    assert "asks for values once" in line_of(page_of(found["shown"]), "z = float(wave(x).sum())")


@pytest.mark.parametrize(("ending", "said"), [
    ("1 / 0", "ZeroDivisionError: division by zero"),
    ("print(1", "SyntaxError"),
    ("raise KeyboardInterrupt", "it was interrupted"),
])  # fmt: skip
def test_a_cell_that_fails_gets_its_report(tmp_path: Path, ending: str, said: str) -> None:
    cell = f"%%clfuse_report\nz = float(wave(x).sum())\n{ending}"
    *_, found, after = session(
        tmp_path, "%load_ext clfuse", BEGIN, cell, "print(np.stats()['fallbacks'])"
    )
    page = page_of(found["shown"])
    assert any(
        "did not come to its end" in text and said in text
        for _, text in page.find("p", **{"class": "warn"})
    )
    assert type_of(said) in found["out"] + found["err"]
    assert after["out"] == "0\n"


def type_of(said: str) -> str:
    return "KeyboardInterrupt" if "interrupted" in said else said.partition(":")[0]


@pytest.mark.parametrize("line", ["no/such/folder/p.html", "two files", "--output p.html"])
def test_a_magic_that_is_called_wrongly_runs_nothing(tmp_path: Path, line: str) -> None:
    *_, found = session(tmp_path, "%load_ext clfuse", f"%%clfuse_report {line}\nprint('ran')")
    assert found["out"] == ""
    assert "%%clfuse_report" in found["err"]
    assert found["shown"] == []
