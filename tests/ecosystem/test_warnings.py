"""Warnings of other packages name the program's line, though functions of ours stand between."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import clfuse
from clfuse.errors import warn_user
from clfuse.user_frames import passed_over
from tests.support.processes import python

pytest.importorskip("scipy")


def welch(m: Any) -> None:
    from scipy import signal

    signal.welch(m.arange(10.0), nperseg=256)


def pearsonr(m: Any) -> None:
    from scipy import stats

    stats.pearsonr(m.arange(10.0), m.ones(10))


def curve_fit(m: Any) -> None:
    from scipy import optimize

    optimize.curve_fit(lambda x, a: 0 * a * x, m.arange(9.0), m.arange(9.0))


def polyfit(m: Any) -> None:
    np.polynomial.polynomial.polyfit(np.arange(3.0), np.arange(3.0), 5)


def class_of_package(m: Any) -> None:
    from scipy import interpolate

    x = m.arange(20.0)
    interpolate.UnivariateSpline(x, m.sin(9 * x), s=0.5).set_smoothing_factor(1e-200)


WARNS: tuple[Callable[[Any], None], ...] = (welch, pearsonr, curve_fit, class_of_package, polyfit)


def places(call: Callable[[], Any]) -> list[tuple[str, type[Warning], str, int]]:
    """Each warning: what it says, its class, and the file and line that it names."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    assert found
    return [(str(each.message), each.category, each.filename, each.lineno) for each in found]


@pytest.mark.parametrize("body", WARNS, ids=lambda body: body.__name__)
def test_warnings_name_the_same_line_as_with_numpy(body: Callable[[Any], None]) -> None:
    assert places(lambda: body(clfuse)) == places(lambda: body(np))


def test_every_line_is_warned_of_once(tmp_path: Path) -> None:
    lines = ["import clfuse as m", "from scipy import signal", "x = m.arange(10.0)",
             "signal.welch(x, nperseg=256)", "signal.welch(x, nperseg=256)"]  # fmt: skip
    (tmp_path / "program.py").write_text("\n".join(lines))
    said = python("program.py", cwd=tmp_path).stderr
    assert "program.py:4: UserWarning" in said
    assert "program.py:5: UserWarning" in said


def test_warnings_of_an_import_are_the_importers(tmp_path: Path) -> None:
    (tmp_path / "package_like.py").write_text(
        "import warnings\nwarnings.warn('old', DeprecationWarning, stacklevel=2)\n"
    )
    (tmp_path / "program.py").write_text("import clfuse\nimport package_like\n")
    said = python("program.py", cwd=tmp_path, CLFUSE_NUMPY_PACKAGES="package_like").stderr
    assert "program.py:2: DeprecationWarning: old" in said


def test_our_warnings_pass_over_what_stands_between() -> None:
    @passed_over
    def stands_between() -> None:
        warn_user("told", UserWarning)

    line = sys._getframe().f_lineno + 1
    (found,) = places(lambda: stands_between())
    assert found[2:] == (__file__, line)
