"""Errors are shown with the user's line last: frames of clfuse are left out where it is their user
who can do something.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

WRONG_SHAPES = """
    import clfuse as np
    def add(a, b):
        return a + b
    add(np.ones((3, 4)), np.ones((5, 6)))
"""
JOINED = """
    import clfuse as np
    a, b = np.ones((300, 4)), np.ones((500, 6))
    try:
        np.concatenate([a, b])
    except ValueError as error:
        raise KeyError(3) from error
"""
CALLED_BACK = """
    import clfuse as np
    def f(row):
        return np.ones(3) + np.ones(4)
    np.apply_along_axis(f, 0, np.ones((3, 3)))
"""
THREAD = """
    import threading
    import clfuse as np
    def work():
        np.ones(3) + np.ones(4)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
"""


def shown(folder: Path, source: str, **variables: str) -> list[str]:
    """What a program writes to the standard error."""
    (folder / "program.py").write_text(textwrap.dedent(source).lstrip(), encoding="utf-8")
    return subprocess.run(
        [sys.executable, "program.py"], cwd=folder, capture_output=True, text=True, timeout=120,
        env={**os.environ, "CLFUSE_HOST_US": "50", "CLFUSE_DEBUG": "", **variables},
    ).stderr.splitlines()


def files(lines: list[str]) -> list[str]:
    return [line.split('"')[1] for line in lines if line.startswith('  File "')]


@pytest.mark.parametrize("compiled", ["on", "off"])
@pytest.mark.parametrize(("source", "frames"), [
    (WRONG_SHAPES, 2), (JOINED, 2), (CALLED_BACK, 2),
], ids=["shapes", "causes", "called back"])
def test_only_the_users_frames_are_shown(
    tmp_path: Path, source: str, frames: int, compiled: str
) -> None:
    lines = shown(tmp_path, source, CLFUSE_COMPILED=compiled)
    assert [os.path.basename(file) for file in files(lines)] == ["program.py"] * frames
    everything = shown(tmp_path, source, CLFUSE_COMPILED=compiled, CLFUSE_DEBUG="1")
    assert len(files(everything)) > frames
    assert everything[-1] == lines[-1]


def test_a_thread_shows_the_users_frames_behind_pythons(tmp_path: Path) -> None:
    names = [os.path.basename(file) for file in files(shown(tmp_path, THREAD))]
    assert names == ["threading.py", "threading.py", "program.py"]


def test_a_hook_that_was_there_before_is_called(tmp_path: Path) -> None:
    source = """
        import sys
        sys.excepthook = lambda kind, error, traceback: print(
            kind.__name__, traceback.tb_next, file=sys.stderr
        )
        import clfuse as np
        np.ones(3) + np.ones(4)
    """
    assert shown(tmp_path, source) == ["ValueError None"]


def test_an_interrupt_in_a_package_behind_clfuse_is_the_users() -> None:
    """A bar is drawn while clfuse waits: Ctrl-C may fall there."""
    import tqdm

    from clfuse.tracebacks import hide_frames

    names: dict[str, Any] = {}
    for text, file in (
        ("def draw(): raise KeyboardInterrupt", tqdm.__file__),
        ("def wait(): draw()", os.path.join("clfuse", "_core", "x.pxi")),
    ):
        exec(compile(text, file, "exec"), names)
    with pytest.raises(KeyboardInterrupt) as raised:
        names["wait"]()
    hide_frames(raised.value)
    traceback = raised.value.__traceback__
    assert traceback is not None
    assert traceback.tb_next is None
    assert traceback.tb_frame.f_code.co_filename == __file__


def test_faults_of_clfuse_keep_their_frames() -> None:
    from clfuse.tracebacks import hide_frames

    code = compile("raise error", os.path.join("clfuse", "_core", "x.pxi"), "exec")
    for kind, frames in ((AssertionError, 2), (KeyError, 2), (ValueError, 1), (TypeError, 1)):
        try:
            exec(code, {"error": kind("planner error")})
        except (AssertionError, LookupError, ValueError, TypeError) as error:
            hide_frames(error)
            traceback = error.__traceback__
            assert (traceback is not None) + (traceback.tb_next is not None) == frames


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python shows no notes")
def test_a_c_function_for_numpys_class_has_a_way_out(tmp_path: Path) -> None:
    source = """
        import clfuse as np
        raise TypeError("argument 1 must be numpy.ndarray, not ndarray")
    """
    lines = shown(tmp_path, source)
    assert lines[-2] == "TypeError: argument 1 must be numpy.ndarray, not ndarray"
    assert "clfuse.asnumpy(x)" in lines[-1]


def test_ipython_shows_the_users_frames(tmp_path: Path) -> None:
    pytest.importorskip("IPython")
    source = """
        from IPython.core.interactiveshell import InteractiveShell
        shell = InteractiveShell.instance(colors="nocolor")
        shell.run_cell("import clfuse as np; a = np.ones((3, 4)); b = np.ones((5, 6))")
        shell.run_cell("def add():\\n    return a + b\\nadd()")
    """
    (tmp_path / "program.py").write_text(textwrap.dedent(source).lstrip(), encoding="utf-8")
    finished = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120,
        env={**os.environ, "CLFUSE_HOST_US": "50", "IPYTHONDIR": str(tmp_path)},
    )
    assert "operands could not be broadcast together with shapes (3,4) (5,6)" in finished.stdout
    assert "return a + b" in finished.stdout
    assert ".pxi" not in finished.stdout
    assert os.path.join("clfuse", "") not in finished.stdout.replace(str(tmp_path), "")
