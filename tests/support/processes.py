"""Python in a process of its own, as a user starts it."""

import os
import subprocess
import sys
from pathlib import Path


def python(
    *arguments: str, cwd: Path, text: str | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    first = variables.pop("PYTHONPATH", "")
    path = os.pathsep.join(filter(None, [first, os.environ["PYTHONPATH"]]))
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        input=text,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **variables, "PYTHONPATH": path},
    )
