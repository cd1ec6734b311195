"""The page of a report in a browser: what the pointer and clicks do, and what is there without.

Chromium runs the page's own script, and one of the test's after it, which uses the page and writes
down what it has found. ``ci/setup`` installs Debian's.
"""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from clfuse.tools.report.page import render
from tests.support.reported import reported

pytestmark = [
    pytest.mark.clfuse_only,
    pytest.mark.skipif(shutil.which("chromium") is None, reason="Chromium is not installed"),
]

PROGRAM = """\
import clfuse as np
x = np.linspace(0, 1, 500_000)
y = np.sin(x)
z = y * 2
print(float(z.sum()))
w = np.cos(np.arange(300_000.0))
print(float(w.max()))
"""

USES = """
window.addEventListener("error", (event) => found.errors.push(event.message));
const row = (n) => document.getElementById("f0-" + n);
const lit = () => Array.from(document.querySelectorAll("#lines tr.lit")).map((r) => r.id).sort();
const chosen = () => Array.from(document.querySelectorAll("#lines tr.chosen")).map((r) => r.id);
const over = (n) => row(n).dispatchEvent(new MouseEvent("mouseenter"));
const out = (n) => row(n).dispatchEvent(new MouseEvent("mouseleave"));
const found = {errors: []};
found.before = lit();
over(3); found.over = lit(); found.chosen = chosen();
found.bars = document.querySelectorAll("#timeline rect.lit").length;
out(3); found.after = lit();
row(3).click(); out(3); found.held = chosen();
over(6); found.still = chosen();
row(3).click(); found.let_go = chosen();
const all = document.getElementById("all-lines");
found.hidden_before = row(1).hidden;
all.click(); found.hidden = row(1).hidden; found.busy_hidden = row(3).hidden;
all.click(); found.shown_again = !row(1).hidden;
const chart = document.getElementById("timeline");
const box = () => chart.getAttribute("viewBox").split(" ").map(Number);
const ticks = () => document.getElementById("ticks").lastElementChild.textContent;
found.box = box(); found.tick = ticks();
document.getElementById("zoom-in").click();
found.zoomed = box(); found.zoomed_tick = ticks();
document.getElementById("zoom-all").click();
found.whole = box();
const bar = chart.querySelector("rect.kernel");
bar.dispatchEvent(new PointerEvent("pointermove", {bubbles: true}));
found.say = document.getElementById("say").textContent;
const plan = document.querySelector("details.plan");
plan.querySelector("summary").click(); found.open = plan.open;
const element = document.createElement("pre");
element.id = "found";
element.textContent = JSON.stringify(found);
document.body.append(element);
"""


def shown(page: str, tmp_path: Path, *options: str) -> str:
    """The document that a browser makes of a page."""
    path = tmp_path / "page.html"
    path.write_text(page, encoding="utf-8")
    finished = subprocess.run(
        ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
         f"--user-data-dir={tmp_path / 'profile'}", *options, "--dump-dom", path.as_uri()],
        capture_output=True, text=True, timeout=120,
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


@pytest.mark.usefixtures("capsys")
def test_lines_light_up_and_the_timeline_zooms(tmp_path: Path) -> None:
    page = render(reported(PROGRAM, tmp_path))
    used = page.replace("</body>", f"<script>{USES}</script></body>")
    document = shown(used, tmp_path)
    text = re.search(r'<pre id="found">(.*?)</pre>', document, re.DOTALL)
    assert text is not None, document[-2000:]
    found: dict[str, Any] = json.loads(html.unescape(text[1]))
    assert found["errors"] == []
    assert found["before"] == found["after"] == []
    assert "f0-4" in found["over"]
    assert "f0-6" not in found["over"]
    assert found["chosen"] == ["f0-3"]
    assert found["bars"] >= 1
    assert found["held"] == found["still"] == ["f0-3"]  # a click holds what is lit
    assert not found["hidden_before"]
    assert found["hidden"]
    assert not found["busy_hidden"]
    assert found["shown_again"]
    left, _, width, height = found["box"]
    assert found["zoomed"] == [width / 4, 0, width / 2, height]
    assert found["zoomed_tick"] != found["tick"]
    assert found["whole"] == [left, 0, width, height]
    assert "lines" in found["say"]
    assert found["open"]
