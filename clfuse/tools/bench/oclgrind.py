"""Runs a command under Oclgrind with the plugin that counts memory traffic (``traffic.cpp``).

Oclgrind interprets every kernel and tells a plugin of each load and store. The plugin is compiled
on first use and kept in the user's cache.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from clfuse.dataclass import frozen
from clfuse.runtime.files.storage import read_checked, subfolder, write_checked

__all__ = ["Counts", "LocalCounts", "Measured", "SimulatorError", "plugin", "read", "under"]

SOURCE = Path(__file__).parent / "traffic.cpp"
FILE_VARIABLE = "OCLGRIND_TRAFFIC_FILE"
#: The work-items whose accesses are one request, and the bytes that memory moves at least: NVIDIA's
#: warp and sector (CUDA C++ Best Practices Guide, "Coalesced Access to Global Memory"). AMD's and
#: Intel's GPUs have other widths, and the same rule.
WARP, SECTOR = 32, 32
LARGEST_PLUGIN = 16 << 20
"""Bytes; it has 75,000."""
#: Oclgrind was built without run-time type information: so must what derives from its classes.
OPTIONS = ("-std=c++14", "-O2", "-fPIC", "-shared", "-fno-rtti")


class SimulatorError(RuntimeError):
    """Something that the simulation needs is not installed, or does not work."""


@frozen
class Counts:
    """Loads or stores of a kernel in global memory.

    requests: memory instructions of warps; a vector that is loaded in pieces has one for each.
    asked: bytes that the work-items named, each as often as they did.
    sectors: sectors that a request touches, summed.
    whole: the same, if vectors were never loaded in pieces.
    least: sectors that the different bytes of a vector's request would fill, summed.
    """

    requests: int
    asked: int
    sectors: int
    whole: int
    least: int


@frozen
class LocalCounts:
    """Loads and stores of a kernel in local memory.

    requests: memory instructions of warps.
    asked: bytes that the work-items named.
    passes: over the banks, each of which delivers a word at a time.
    least: the passes that would be without two words of one bank in a request.
    """

    requests: int
    asked: int
    passes: int
    least: int


@frozen
class Measured:
    """What one launch of a kernel did.

    work_items, work_group, groups, warps: how many there were; of a group, for `work_group`.
    atomics, local_atomics: atomic operations of work-items, in global and in local memory.
    fetched_sectors, written_sectors: different sectors of every group, summed: what is left if each
        group has a cache that forgets nothing.
    read_nbytes, written_nbytes: different bytes that the launch reads before it has written them,
        and that it writes.
    """

    kernel: str
    work_items: int
    work_group: int
    groups: int
    warps: int
    loads: Counts
    stores: Counts
    local: LocalCounts
    atomics: int
    local_atomics: int
    fetched_sectors: int
    written_sectors: int
    read_nbytes: int
    written_nbytes: int

    @property
    def sector_nbytes(self) -> int:
        """Bytes of the sectors that loads and stores touch."""
        return SECTOR * (self.loads.sectors + self.stores.sectors)

    @property
    def cached_nbytes(self) -> int:
        """The same, if each group has a cache that forgets nothing."""
        return SECTOR * (self.fetched_sectors + self.written_sectors)


def measured(record: Mapping[str, Any]) -> Measured:
    """A line of the plugin's file."""
    parts = {"loads": Counts, "stores": Counts, "local": LocalCounts}
    return Measured(
        **{name: parts[name](**value) if name in parts else value for name, value in record.items()}
    )


def read(path: Path, start: int = 0) -> list[Measured]:
    """The launches that the plugin has written down, from number `start` on."""
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").splitlines()
    return [measured(json.loads(line)) for line in lines[start:]]


def require(program: str, package: str) -> str:
    """Where a program is; SimulatorError where it is not installed."""
    found = shutil.which(program)
    if found is None:
        raise SimulatorError(
            f"{program} is not installed (Debian and Ubuntu: apt-get install {package})"
        )
    return found


def plugin(folder: Path) -> Path:
    """The compiled plugin: from the user's cache, or made now.

    folder: where it is made if the user has no cache that can be written.

    Raises SimulatorError: there is no compiler or no header, with what to install; or it does not
        compile.
    """
    simulator = require("oclgrind", "oclgrind")
    compiler = os.environ.get("CXX") or require("g++", "g++")
    versions = [
        subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
        for program in (compiler, simulator)
    ]
    text = "\0".join([SOURCE.read_text(encoding="utf-8"), *versions, *OPTIONS])
    name = f"traffic-{hashlib.sha256(text.encode()).hexdigest()[:24]}.so"
    made = folder / name
    if made.exists():
        return made
    cache = subfolder("oclgrind")
    kept = None if cache is None else read_checked(cache / name, LARGEST_PLUGIN)
    if kept is not None:
        made.write_bytes(kept)
        return made
    command = [compiler, *OPTIONS, str(SOURCE), "-o", str(made), "-loclgrind"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SimulatorError(
            "the plugin for Oclgrind does not compile; it needs the headers of Oclgrind and of"
            " OpenCL (Debian and Ubuntu: apt-get install liboclgrind-dev opencl-c-headers):\n"
            f"{done.stderr.strip()[:2000]}"
        )
    if cache is not None:
        with suppress(OSError):  # made again next time
            write_checked(cache / name, made.read_bytes())
    return made


def under(
    command: Sequence[str],
    folder: Path,
    options: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
) -> list[Measured]:
    """Run a command with Oclgrind as its OpenCL library; return the launches of all its kernels.

    What the command writes to its output goes to ours.

    Parameters
    ----------
    command : sequence of str
    folder : Path
        Of the caller, for the plugin and its file; `FILE_VARIABLE` tells the command where that is.
    options : sequence of str
        Of Oclgrind.
    environment : mapping, optional
        Added to this process's.

    Raises SimulatorError: see `plugin`; or the command failed.
    """
    library = plugin(folder)
    handle, name = tempfile.mkstemp(dir=folder, suffix=".json")
    os.close(handle)
    variables = {**os.environ, FILE_VARIABLE: name, **(environment or {})}
    done = subprocess.run(
        ["oclgrind", "--plugins", str(library), *options, *command], env=variables, check=False
    )
    if done.returncode:
        raise SimulatorError(f"{' '.join(command)} under Oclgrind ended with {done.returncode}")
    return read(Path(name))
