"""The constants of kernels that come again are in memory, where a driver loads kernels from
files."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from clfuse.engine.evaluate import forget_plans
from clfuse.runtime.drivers.loaded_pages import bring_in

pytestmark = pytest.mark.clfuse_only

MAPS = Path("/proc/self/smaps")


def pages_of(library: str) -> list[tuple[int, int]]:
    """(kilobytes, of these in memory) of what can be read of a library."""
    found: list[tuple[int, int]] = []
    sizes: dict[str, int] = {}
    is_meant = False
    for line in MAPS.read_text().splitlines():
        head = re.match(r"[0-9a-f]+-[0-9a-f]+ (\S+) .*", line)
        if head:
            is_meant = line.endswith(f"/{library}") and head[1].startswith("r")
        elif is_meant and line.startswith(("Size:", "Rss:")):
            name, number, _ = line.split()
            sizes[name] = int(number)
            if name == "Rss:":
                found.append((sizes["Size:"], sizes["Rss:"]))
    return found


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux lists pages")
def test_constants_of_kernels_that_come_again_are_in_memory(xp: ModuleType) -> None:
    device = xp.get_device()
    if device.platform_name != "Portable Computing Language" or device.simulation is not None:
        pytest.skip("kernels are no libraries here")
    x = xp.asarray(np.arange(70_000))
    y = xp.asarray(np.arange(70_000) + 1)
    forget_plans()
    with (
        xp.config.override(host_us=0),
        device.trying(replace(device.traits, loads_pages_late=True)),
    ):
        for one, other in ((x, y), (x / 1.0, y / 1.0)):  # two kernels of one name
            xp.evaluate(one, other)
            for _ in range(4):
                assert not np.asarray(one == other).any()
        replayed = xp.jit(lambda a, b: a >= b)
        for _ in range(4):
            assert not np.asarray(replayed(x, y)).any()
    forget_plans()
    for library in ("map_equal.so", "map_greater_equal.so"):
        pages = pages_of(library)
        assert pages
        assert all(in_memory == nbytes for nbytes, in_memory in pages)


IMPORTS_BESIDE = """
import _ctypes, shutil, sys, threading
from clfuse.runtime.drivers.loaded_pages import bring_in

def bring_in_again():
    while is_running:
        bring_in(["map_equal"])

is_running = True
thread = threading.Thread(target=bring_in_again)
thread.start()
for number in range(100):  # each holds Python's lock, as an import does, and waits for the loader's
    _ctypes.dlopen(shutil.copy(sys.argv[1], f"{sys.argv[2]}/{number}.so"), 0)
is_running = False
thread.join()
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux lists pages")
def test_pages_are_brought_in_beside_imports(tmp_path: Path) -> None:
    """Code that held the loader's lock, and waited for Python's, hung here."""
    library = np.linalg._umath_linalg.__file__
    command = [sys.executable, "-c", IMPORTS_BESIDE, library, str(tmp_path)]
    subprocess.run(command, check=True, timeout=300)


def test_what_is_not_loaded_is_not_found() -> None:
    assert bring_in(["no kernel is called so"]) == {"no kernel is called so": set()}
