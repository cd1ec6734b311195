"""A notebook, run by Jupyter's own client: reports of its cells."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ipykernel")
nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")

BEGIN = """\
import clfuse as np
def wave(x):
    return np.sin(x) * 2
x = np.linspace(0, 1, 300_000)"""


def executed(folder: Path, monkeypatch: pytest.MonkeyPatch, *cells: str) -> list[Any]:
    """The outputs of each cell."""
    for name, value in {
        "CLFUSE_HOST_US": "0", "IPYTHONDIR": str(folder), "JUPYTER_RUNTIME_DIR": str(folder),
        "JUPYTER_PATH": "", "JUPYTER_CONFIG_DIR": str(folder),
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(each) for each in cells])
    client = nbclient.NotebookClient(
        notebook, timeout=300, kernel_name="python3",
        resources={"metadata": {"path": os.fspath(folder)}},
    )  # fmt: skip
    client.execute()
    return [cell.outputs for cell in notebook.cells]


# Jupyter's client leaves an event loop and sockets to the garbage collector.
@pytest.mark.filterwarnings("ignore")
def test_a_notebook_shows_reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    *_, cell, block = executed(
        tmp_path, monkeypatch, "%load_ext clfuse", BEGIN,
        "%%clfuse_report\ny = wave(x)\nfloat(y.sum())",
        "with np.profile() as times:\n    z = float(wave(x).sum())\ntimes",
    )  # fmt: skip
    value, report = cell
    assert value.output_type == "execute_result"
    assert float(value.data["text/plain"]) == pytest.approx(275818, rel=1e-4)
    assert report.output_type == "display_data"
    for shown, title in ((report, "%%clfuse_report in In[3]"), (block[-1], "profile() in In[4]")):
        page = shown.data["text/html"]
        assert page.startswith("<iframe srcdoc=")
        assert f"{title}&lt;/title&gt;" in page
        assert "in a kernel with" in page
        assert "In[2]" in page
