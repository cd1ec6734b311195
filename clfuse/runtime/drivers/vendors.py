"""OpenCL drivers that the system does not list: found, and shown to the ICD loader.

The ICD loader reads a folder of ``.icd`` files, each naming a driver's library, once per process.
Two kinds of driver are missing from it in practice: Intel's CPU runtime from PyPI, whose wheel lays
its libraries into the environment's ``lib`` and whose own ``.icd`` holds the path of the machine
where it was packed; and NVIDIA's, which containers mount without its ``.icd``. So a folder of our
own lists the system's drivers and those two, and only our first call to the loader sees it.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import site
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from clfuse.config import settings
from clfuse.process import forks
from clfuse.runtime.files import trust
from clfuse.runtime.files.storage import cache_folder, read_ours, warn_once, write_whole

__all__ = ["drivers", "load_errors", "loaded_beside", "loader_environment"]

SYSTEM_FOLDER = Path("/etc/OpenCL/vendors")

INTEL_LIBRARY = "libintelocl.so"
INTEL_RECORD = "intel_opencl_rt-*.dist-info/RECORD"

NVIDIA_LIBRARY = "libnvidia-opencl.so.1"

LARGEST_ICD = 1 << 16
"""Bytes of a file that names a library."""

#: Where container runtimes mount NVIDIA's driver without telling the dynamic linker.
#: How the names of libraries begin that have no devices but processors.
PROCESSORS = ("libpocl", "libintelocl")

NVIDIA_FOLDERS = (
    "/usr/local/nvidia/lib64",
    "/usr/local/nvidia/lib",
    "/usr/lib/wsl/lib",
    "/usr/lib64/nvidia",
)


@contextmanager
def loader_environment() -> Iterator[None]:
    """Let the ICD loader see this environment's drivers too, for the length of the block.

    `OCL_ICD_VENDORS` is put back afterwards: the loader has read it by then, and a process that we
    start should find what the user set.
    """
    system = _system_drivers()
    missing = _missing_drivers(system) if _adds_drivers() else {}
    if not missing:
        yield
        return
    before = os.environ.get("OCL_ICD_VENDORS")
    with _folder_with({**system, **missing}) as folder:
        os.environ["OCL_ICD_VENDORS"] = str(folder)
        try:
            yield
        finally:
            if before is None:
                del os.environ["OCL_ICD_VENDORS"]
            else:
                os.environ["OCL_ICD_VENDORS"] = before


def _adds_drivers() -> bool:
    # Elsewhere than on Linux the loader asks the registry or the system, and reads no such folder.
    return settings.vendors == "auto" and sys.platform.startswith("linux")


def drivers() -> dict[str, str]:
    """Return .icd file name -> library, for every driver that the loader is shown."""
    found = _system_drivers()
    if _adds_drivers():
        found.update(_missing_drivers(found))
    return found


def only_processors() -> list[str]:
    """The names of the drivers' libraries if all of them are for processors, else none. Nothing is
    loaded for it."""
    names = [Path(library).name for library in drivers().values()]
    return names if all(name.startswith(PROCESSORS) for name in names) else []


_loading: Final[list[threading.Thread]] = []


@contextmanager
def loaded_beside(libraries: Iterable[str]) -> Iterator[None]:
    """Load drivers' libraries while the block runs, where the ICD loader finds them afterwards.

    That takes 20 ms for a compiler like LLVM. pyopencl's calls, and `ctypes.CDLL`, hold Python's
    lock for so long: no other thread of the program would go on.
    """
    named = tuple(libraries)
    if not named:  # as on systems whose loader asks no folder
        yield
        return
    thread = threading.Thread(target=_load, args=(named,), name="clfuse loads", daemon=True)
    try:
        thread.start()
    except RuntimeError:  # the interpreter ends
        yield
        return
    _loading.append(thread)
    try:
        yield
    finally:
        thread.join()
        _loading.remove(thread)


def _load(libraries: tuple[str, ...]) -> None:
    # The linker's function by itself: Python's lock is free during foreign calls. What cannot be
    # loaded is the ICD loader's to leave out.
    load = ctypes.CDLL(None).dlopen
    for library in libraries:
        load(os.fsencode(library), os.RTLD_LAZY | os.RTLD_LOCAL)


def _wait_until_loaded() -> None:
    for thread in list(_loading):
        thread.join()


forks.before.append(_wait_until_loaded)  # a forked process has the linker as it is


def load_errors() -> list[tuple[str, str, str]]:
    """Return (.icd file name, library, the linker's words) for every driver that does not load."""
    errors = []
    for name, library in drivers().items():
        try:
            ctypes.CDLL(library)
        except OSError as error:
            errors.append((name, library, str(error)))
    return errors


def _missing_drivers(system: dict[str, str]) -> dict[str, str]:
    """Return .icd file name -> library for what is here and not among the system's."""
    known = {_library_key(text) for text in system.values()}
    missing = {}
    for library in (*_intel_drivers(), *_nvidia_drivers(system)):
        if _library_key(str(library)) not in known:
            missing[f"clfuse-{library.name.split('.')[0]}.icd"] = str(library)
    return missing


def _library_key(text: str) -> str:
    """Return what tells drivers apart: the real path, or the name that the linker resolves."""
    return os.path.realpath(text) if os.path.isabs(text) else text


def _system_drivers() -> dict[str, str]:
    """Return file name -> driver for what the loader would list by itself."""
    named = os.environ.get("OCL_ICD_VENDORS") or os.environ.get("OPENCL_VENDOR_PATH") or ""
    place = Path(named) if named else SYSTEM_FOLDER
    if named and not place.is_dir():
        # The loader takes one .icd file, or the name of one library, in place of a folder.
        if place.suffix == ".icd":
            return {place.name: text} if (text := _read_icd(place)) else {}
        return {"system.icd": named}
    try:
        files = sorted(place.glob("*.icd"))
    except OSError:
        return {}
    return {file.name: text for file in files if (text := _read_icd(file))}


def _read_icd(file: Path) -> str:
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return lines[0].strip() if lines else ""


def _intel_drivers() -> list[Path]:
    """Return Intel's CPU runtime of this Python environment, as a list of none or one."""
    for folder in _library_folders():
        library = folder / INTEL_LIBRARY
        if library.is_file():
            return [library]
    return []


def _library_folders() -> Iterator[Path]:
    yield Path(sys.prefix, "lib")
    if site.ENABLE_USER_SITE and (base := site.getuserbase()):
        yield Path(base, "lib")
    # Other ways to install (--target, --prefix) put it elsewhere; the wheel's own list of files
    # knows where. `importlib.metadata` reads it, too, but takes 20 ms to import.
    for place in sys.path:
        for record in Path(place or ".").glob(INTEL_RECORD):
            for file in _recorded_files(record):
                if file.name == INTEL_LIBRARY:
                    yield Path(os.path.realpath(record.parent.parent / file)).parent


def _recorded_files(record: Path) -> list[Path]:
    """Return the files of a wheel, as its list of them names them; none if it cannot be read."""
    try:
        lines = record.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    return [Path(line.partition(",")[0]) for line in lines]


def _nvidia_drivers(known: dict[str, str]) -> list[Path]:
    """Return NVIDIA's driver where it is mounted and nothing lists it, as a list of none or one."""
    if any("libnvidia-opencl" in text for text in known.values()):
        return []
    for folder in (*NVIDIA_FOLDERS, *os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)):
        library = Path(folder, NVIDIA_LIBRARY)
        if folder and library.is_file():
            return [library]
    try:
        ctypes.CDLL(NVIDIA_LIBRARY)
    except OSError:
        return []
    return [Path(NVIDIA_LIBRARY)]


@contextmanager
def _folder_with(listed: dict[str, str]) -> Iterator[Path]:
    """Give a folder with one .icd file per driver: the user's cached one if it can be written."""
    folder = _cached_folder(listed)
    if folder is not None:
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="clfuse-vendors-") as temporary:
        _fill(Path(temporary), listed)
        yield Path(temporary)


def _cached_folder(listed: dict[str, str]) -> Path | None:
    """Return these drivers' folder, written once for all processes; None without a cache."""
    text = "\n".join(f"{name}\t{library}" for name, library in sorted(listed.items()))
    cache = cache_folder()
    if cache is None:
        return None
    folder = cache / f"vendors-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    if _holds(folder, listed):
        return folder
    try:
        trust.make(str(cache))  # it may have been cleared
        fresh = Path(tempfile.mkdtemp(prefix=f"{folder.name}-", dir=folder.parent))
    except OSError as error:
        warn_once(error)
        return None
    try:
        _fill(fresh, listed)
    except OSError as error:
        shutil.rmtree(fresh, ignore_errors=True)
        warn_once(error)
        return None
    shutil.rmtree(folder, ignore_errors=True)  # if it is there, it was changed
    try:
        # Atomic: another process sees the whole folder or none.
        fresh.rename(folder)
    except OSError:  # another process was quicker
        shutil.rmtree(fresh, ignore_errors=True)
    return folder if _holds(folder, listed) else None


def _fill(folder: Path, listed: dict[str, str]) -> None:
    for name, library in listed.items():
        write_whole(folder / name, f"{library}\n".encode())


def _holds(folder: Path, listed: dict[str, str]) -> bool:
    """Whether these drivers are in a folder, and no others: the loader loads all of them."""
    try:
        return set(os.listdir(folder)) == set(listed) and all(
            read_ours(folder / name, LARGEST_ICD) == f"{library}\n".encode()
            for name, library in listed.items()
        )
    except OSError:
        return False
