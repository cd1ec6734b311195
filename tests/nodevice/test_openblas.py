"""NumPy's BLAS, and nobody else, is told to let its threads sleep, if nobody has said otherwise."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SCRIPT = """
import os, sys
seen = []
class Watch:
    def find_spec(self, name, *rest):
        if name == "numpy":
            seen.append(os.environ.get("OPENBLAS_THREAD_TIMEOUT"))
sys.meta_path.insert(0, Watch())
%s
import clfuse
print(seen[0], os.environ.get("OPENBLAS_THREAD_TIMEOUT"))
"""


@pytest.mark.parametrize(
    ("given", "first", "expected"),
    [(None, "", "18 None"), ("20", "", "20 20"), (None, "import numpy", "None None")],
)
def test_the_variable_is_set_while_numpy_is_loaded(
    given: str | None, first: str, expected: str
) -> None:
    environment = {key: value for key, value in os.environ.items()
                   if key != "OPENBLAS_THREAD_TIMEOUT"}
    if given is not None:
        environment["OPENBLAS_THREAD_TIMEOUT"] = given
    found = subprocess.run([sys.executable, "-c", SCRIPT % first], env=environment,
                           capture_output=True, text=True, check=True)
    assert found.stdout.strip() == expected
