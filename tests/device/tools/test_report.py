"""Reports of runs: what is said of lines, kernels, plans, NumPy and memory; and how runs end."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import clfuse
from clfuse import events
from clfuse.engine import executable
from clfuse.tools.report import collector as collectors
from clfuse.tools.report.page import MOST_NBYTES, render
from clfuse.tools.report.summary import KernelSeen, Line, Summary
from tests.support.reported import Page, reported

pytestmark = pytest.mark.clfuse_only

FUSED = """\
import clfuse as np
x = np.linspace(0, 1, 500_000)
y = np.sin(x)
z = y * 2
print(float(z.sum()))
w = np.cos(x)
print(float(w.max()))
"""


def run(
    folder: Path, *command: str, text: str, check: int | None = 0, **variables: str
) -> subprocess.CompletedProcess[str]:
    """``python -m clfuse`` with a script of this text, in a folder."""
    (folder / "script.py").write_text(text, encoding="utf-8")
    finished = subprocess.run(
        [sys.executable, "-m", "clfuse", *command], cwd=folder, capture_output=True, text=True,
        timeout=300, env={**os.environ, "CLFUSE_HOST_US": "0", "CLFUSE_FUSION": "on", **variables},
    )
    assert check is None or finished.returncode == check, finished.stderr
    return finished


def line_of(summary: Summary, number: int) -> Line:
    return summary.files[0].lines[number - 1]


def kernel_line(kernel: KernelSeen, number: int) -> tuple[str, int]:
    return next(place for place in kernel.lines if place[1] == number)


# -- what is collected -----------------------------------------------------------------------------


@pytest.mark.usefixtures("capsys")
def test_lines_that_share_a_kernel_share_its_time(tmp_path: Path) -> None:
    summary = reported(FUSED, tmp_path)
    fused = [k for k in summary.kernels if {3, 4} <= {number for _, number in k.lines}]
    kernel = fused[0]  # GPUs have another one, which folds what is left
    assert {number for _, number in kernel.lines} <= {2, 3, 4, 5}
    assert sum(kernel.shares.values()) == pytest.approx(1)
    assert kernel.count == 1
    # A sine weighs more than a product.
    shares = {number: part for (_, number), part in kernel.shares.items()}
    assert shares[3] > shares[4] > 0
    parts = [kernel.elapsed_ns * kernel.shares[kernel_line(kernel, 3)] for kernel in fused]
    assert line_of(summary, 3).device_ns == pytest.approx(sum(parts))
    assert kernel.elapsed_ns > 0
    other = next(k for k in summary.kernels if 6 in {number for _, number in k.lines})
    assert not {3, 4} & {number for _, number in other.lines}


@pytest.mark.usefixtures("capsys")
def test_what_asks_for_values_is_told_from_what_records(tmp_path: Path) -> None:
    summary = reported(FUSED, tmp_path)
    asked = {line.number: line.evaluations for line in summary.files[0].lines if line.evaluations}
    assert asked == {5: 1, 7: 1}


@pytest.mark.usefixtures("capsys")
def test_the_same_plan_is_told_apart_by_its_lines(tmp_path: Path) -> None:
    summary = reported("""\
import clfuse as np
a, b = np.linspace(0, 1, 100_000), np.linspace(0, 2, 100_000)
np.evaluate(a, b)
c = np.exp(a) * 3
print(float(c.sum()))
d = np.exp(b) * 3
print(float(d.sum()))
""", tmp_path)  # fmt: skip
    lines = [{number for _, number in kernel.lines} for kernel in summary.kernels]
    assert any(4 in each and 6 not in each for each in lines)
    assert any(6 in each and 4 not in each for each in lines)


@pytest.mark.usefixtures("capsys")
def test_numpy_and_its_reason_are_known_by_line(tmp_path: Path) -> None:
    summary = reported("""\
import clfuse as np
x = np.linspace(0, 1, 3000) * 2
print(float((x + 1).sum()))
""", tmp_path, host_us=100_000)  # fmt: skip
    reasons = {why for line in summary.files[0].lines for why in line.numpy}
    assert any("CLFUSE_HOST_US" in why for why in reasons)


@pytest.mark.usefixtures("capsys")
def test_fallbacks_are_known_by_line(tmp_path: Path) -> None:
    summary = reported("""import clfuse as np
x = np.linspace(0, 1, 3000) * 2
print(float((x + 1).sum()))
print(np.power.accumulate(x))
""", tmp_path)  # fmt: skip
    assert [name for name, _ in line_of(summary, 4).fallbacks] == ["power.accumulate"]
    assert not line_of(summary, 3).fallbacks
    ((_, text),) = Page(render(summary)).find("tr", id="f0-4")
    assert "fell back power.accumulate, once" in text


@pytest.mark.usefixtures("capsys")
def test_jitted_lines_have_the_time_of_their_replays(tmp_path: Path) -> None:
    summary = reported("""\
import clfuse as np
@np.jit
def step(x):
    y = np.sin(x)
    return y + 1
x = np.linspace(0, 1, 10_000)
for _ in range(20):
    x = step(x)
np.evaluate(x)
""", tmp_path)  # fmt: skip
    kernels = [k for k in summary.kernels if 4 in {number for _, number in k.lines}]
    assert sum(kernel.count for kernel in kernels) >= 20
    assert line_of(summary, 4).device_ns > line_of(summary, 8).device_ns


@pytest.mark.usefixtures("capsys")
def test_the_peak_of_memory_names_the_line_that_holds_it(tmp_path: Path) -> None:
    summary = reported("""\
import clfuse as np
small = np.linspace(0, 1, 20_000) * 2
np.evaluate(small)
large = np.linspace(0, 1, 2_000_000) * 3
np.evaluate(large)
del large
other = np.linspace(0, 1, 20_000) * 4
np.evaluate(other)
""", tmp_path)  # fmt: skip
    held = {line.number: line.held_nbytes for line in summary.files[0].lines if line.held_nbytes}
    assert held[4] == 16_000_000
    assert max(held, key=lambda number: held[number]) == 4


@pytest.mark.usefixtures("capsys")
def test_what_is_not_watched_is_counted(tmp_path: Path) -> None:
    def watch_seldom(collector: collectors.Collector) -> None:
        collector._spent_ns = 1 << 62  # more than its part: the sampler's thread ends watching

    text = """\
import clfuse as np
import time
x = np.linspace(0, 1, 100_000)
np.evaluate(x)
time.sleep(0.1)
for i in range(30):
    float((x * i).sum())
"""
    summary = reported(text, tmp_path, prepare=watch_seldom)
    launched = summary.counted["kernels_launched"]
    assert launched >= 30
    counted = sum(entry.count for entry in summary.of_entry) + summary.collector.unseen
    assert counted == pytest.approx(launched)


@pytest.mark.usefixtures("capsys")
def test_nobody_listens_after_the_end(tmp_path: Path) -> None:
    reported(FUSED, tmp_path)
    assert not events.listeners
    assert not events.watchers
    assert not events.recorders
    assert not executable.observers
    with clfuse.profile() as times:
        float((clfuse.arange(1e6) * 2).sum())
    assert times.kernels


# -- the page --------------------------------------------------------------------------------------


@pytest.mark.usefixtures("capsys")
def test_the_page_needs_nothing_else(tmp_path: Path) -> None:
    text = render(reported(FUSED + "# </td><script>alert(1)</script>\n", tmp_path))
    assert len(text.encode()) < MOST_NBYTES
    page = Page(text)
    for _, attributes, _ in page.elements:
        for name in ("src", "href", "action", "data"):
            target = attributes.get(name) or "#"
            assert target.startswith("#"), target
    assert "@import" not in text
    assert "url(" not in text
    assert len(page.find("script")) == 1  # what the program writes is text
    assert "prefers-color-scheme: dark" in text
    targets = {attributes.get("id") for _, attributes, _ in page.elements}
    assert {a["href"][1:] for a, _ in page.find("a") if a.get("href")} <= targets  # type: ignore[index]


@pytest.mark.usefixtures("capsys")
def test_the_table_is_there_without_javascript(tmp_path: Path) -> None:
    summary = reported(FUSED, tmp_path)
    page = Page(render(summary))
    rows = page.find("tr", id="f0-3")
    assert len(rows) == 1
    attributes, text = rows[0]
    assert "y = np.sin(x)" in text
    assert "in a kernel with" in text
    assert attributes["data-kernels"]
    ((_, idle),) = page.find("tr", id="f0-1")
    assert "import clfuse as np" in idle
    ((_, asks),) = page.find("tr", id="f0-5")
    assert "asks for values once" in asks
    assert page.find("rect", **{"class": "kernel"})
    plans = page.find("details", **{"class": "plan"})
    assert len(plans) == len(summary.collector.plans)
    assert any("__kernel" in text for _, text in page.find("pre"))


@pytest.mark.usefixtures("capsys")
def test_cuts_have_their_reason_and_line(tmp_path: Path) -> None:
    summary = reported("""\
import clfuse as np
x = np.linspace(0, 1, 100_000).reshape(100, 1000)
y = np.cumsum(x * 2, axis=0)
z = np.sort(np.sin(y), axis=1)
print(float(z[5, 7]))
""", tmp_path)  # fmt: skip
    cuts = [cut for plan in summary.collector.plans for cut in plan.schedule.cuts]
    assert cuts
    shown = [text for _, text in Page(render(summary)).find("li")]
    for cut in cuts:
        assert any(cut.reason in text and cut.what in text for text in shown)
    assert any(re.search(r"cut .*\) line \d", text) for text in shown)


# -- runs ------------------------------------------------------------------------------------------


def test_report_runs_the_script_and_writes_beside_it(tmp_path: Path) -> None:
    text = FUSED.replace("clfuse", "numpy") + "import sys\nprint(sys.argv[1:], __name__)\n"
    finished = run(tmp_path, "report", "script.py", "-x", "--stats", text=text)
    plain = run(tmp_path, "run", "script.py", "-x", "--stats", text=text)
    assert finished.stdout == plain.stdout
    assert finished.stdout.endswith("['-x', '--stats'] __main__\n")
    page = Page((tmp_path / "script.report.html").read_text(encoding="utf-8"))
    assert "y = np.sin(x)" in page.find("tr", id="f0-3")[0][1]
    assert "script.report.html" in finished.stderr


def test_a_module_of_the_project_has_its_lines_too(tmp_path: Path) -> None:
    (tmp_path / "steps.py").write_text(
        "import numpy as np\ndef step(x):\n    return np.sin(x) + 1\n", encoding="utf-8"
    )
    text = "import numpy as np\nimport steps\nprint(steps.step(np.linspace(0, 1, 300_000)).sum())\n"
    run(tmp_path, "run", "--report", "page.html", "script.py", text=text)
    page = Page((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert [text for _, text in page.find("h3")][:2] != []
    assert any("np.sin(x) + 1" in text and "in a kernel with" in text
               for attributes, text in page.find("tr") if (attributes.get("id") or "")[:3] == "f1-")


def test_code_of_the_command_line_is_shown(tmp_path: Path) -> None:
    code = "import numpy as np\nx = np.arange(1e6) * 2\nprint(x.sum())"
    run(tmp_path, "report", "-c", code, text="")
    page = Page((tmp_path / "program.report.html").read_text(encoding="utf-8"))
    assert "x = np.arange(1e6) * 2" in page.find("tr", id="f0-2")[0][1]


@pytest.mark.parametrize(("ending", "code", "said"), [
    ("raise ValueError('wrong <input>')", 1, "ValueError: wrong &lt;input&gt;"),
    ("import sys; sys.exit(7)", 7, "7"),
    ("import sys; sys.exit(0)", 0, ""),
    ("if True print()", 1, "SyntaxError"),
])  # fmt: skip
def test_a_script_that_fails_gets_its_report(
    tmp_path: Path, ending: str, code: int, said: str
) -> None:
    text = FUSED + ending + "\n"
    finished = run(tmp_path, "run", "--report", "p.html", "script.py", text=text, check=code)
    plain = run(tmp_path, "run", "script.py", text=text, check=code)
    kept = [line for line in finished.stderr.splitlines() if "clfuse run:" not in line]
    assert kept == [line for line in plain.stderr.splitlines() if "clfuse run:" not in line]
    page = (tmp_path / "p.html").read_text(encoding="utf-8")
    assert ("did not come to its end" in page) == bool(code)
    assert said in page


def test_a_script_that_is_interrupted_gets_its_report(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(
        FUSED + "import time\nprint('ready', flush=True)\ntime.sleep(100)\n", encoding="utf-8"
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "clfuse", "run", "--report", "p.html", "script.py"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "CLFUSE_HOST_US": "0"},
    )
    assert process.stdout is not None
    while "ready" not in process.stdout.readline():
        pass
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=100)
    assert process.returncode == -signal.SIGINT, errors
    assert "KeyboardInterrupt" in errors
    assert "it was interrupted" in (tmp_path / "p.html").read_text(encoding="utf-8")


def test_a_script_without_clfuse_is_told_so(tmp_path: Path) -> None:
    run(tmp_path, "report", "script.py", text="print(sum(range(1000)))\n")
    page = Page((tmp_path / "script.report.html").read_text(encoding="utf-8"))
    ((_, text),) = page.find("p", id="unused")
    assert "Nothing of this program used clfuse" in text


@pytest.mark.parametrize("path", ["no/such/folder/p.html", "."])
def test_a_file_that_cannot_be_written_is_said_first(tmp_path: Path, path: str) -> None:
    finished = run(
        tmp_path, "run", "--report", path, "script.py", text="print('ran')\n", check=2
    )
    assert finished.stdout == ""
    assert f"--report {path}: " in finished.stderr


def test_no_decision_depends_on_the_report(tmp_path: Path) -> None:
    text = """
import numpy as np
for n in (300, 20_000, 200_000):
    x, y = np.linspace(0, 1, n), np.ones(n)
    for _ in range(100):
        x = x + 0.001 * np.sin(x) * y
        s = float(x.sum())
import clfuse
names = ("kernels_launched", "host_evaluations", "plans_made", "programs_built", "fallbacks")
print([clfuse.stats()[name] for name in names], s)
"""
    variables = {"CLFUSE_HOST_US": "50", "CLFUSE_BUILD_AFTER_MS": "0", "CLFUSE_BACKGROUND": "off"}
    outputs = [
        run(tmp_path, "run", *options, "script.py", text=text, **variables).stdout
        for options in ((), ("--report", "p.html"))
    ]
    assert outputs[0] == outputs[1]
