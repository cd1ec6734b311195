"""Plain NumPy programs print the same under ``python -m clfuse run`` as under NumPy; each is a
script beside this file.
"""

import functools
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

HERE = Path(__file__).parent
PROGRAMS = sorted(
    [path for path in HERE.glob("*.py") if not path.name.startswith(("test_", "conftest"))]
    + [path.parent for path in HERE.glob("*/__main__.py")]
)

# Digits in the last place that was printed may differ: sums are taken in another order,
# transcendental functions within 4 ulp.
RTOL, ATOL = 2e-5, 2e-7
NUMBER = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?")


# With kernels for all every small array of these goes through kernels of its own, a hundred in a
# program: they are tested elsewhere, one by one.
SMALL = frozenset({"aliases", "chains", "puzzles", "solvers", "tour"})


def output_of(*command: str, **environment: str) -> str:
    finished = subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        timeout=300,
        # Bytecode in the folder of the programs would be the only trace that a test run leaves.
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **environment},
    )
    assert finished.returncode == 0, (
        f"{command}: exit code {finished.returncode}\n{finished.stderr}"
    )
    return finished.stdout


def words(text: str) -> list[str]:
    """What was printed between the numbers, with how it is spaced left out: a digit may move a
    column.
    """
    return NUMBER.sub("0", text).split()


def assert_same_output(actual: str, expected: str) -> None:
    assert words(actual) == words(expected), f"printed\n{actual}\ninstead of\n{expected}"
    numpy.testing.assert_allclose(
        [float(number) for number in NUMBER.findall(actual)],
        [float(number) for number in NUMBER.findall(expected)],
        rtol=RTOL,
        atol=ATOL,
        err_msg=f"printed\n{actual}\ninstead of\n{expected}",
    )


@pytest.fixture(autouse=True)
def usable_device(device_problem: str | None) -> None:
    """The programs compute: without a device they fail in CI and are skipped elsewhere."""
    if device_problem is None:
        return
    if os.environ.get("CI") or os.environ.get("CLFUSE_TEST_DEVICE") == "required":
        pytest.fail(f"a device is required here: {device_problem}", pytrace=False)
    pytest.skip(device_problem)


@functools.cache
def numpys_output_of(path: Path) -> str:
    expected = output_of(str(path))
    assert expected.strip(), "a program that prints nothing proves nothing"
    return expected


@pytest.mark.clfuse_only
@pytest.mark.parametrize(("path", "host_us"), [
    pytest.param(path, host_us, id=f"{path.stem}-{host_us}")
    for path in PROGRAMS for host_us in (["50"] if path.stem in SMALL else ["0", "50"])
])
def test_program_prints_the_same_under_clfuse(path: Path, host_us: str) -> None:
    """With kernels for all, and with the settings of users."""
    # Programs that draw random numbers print the same only with NumPy's own streams.
    command = ("-m", "clfuse", "run", "--exact-random", str(path))
    assert_same_output(output_of(*command, CLFUSE_HOST_US=host_us), numpys_output_of(path))
