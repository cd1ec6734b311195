"""Whatever lies in a cache, and wherever it lies: the value is right, and at most one warning is
given."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from clfuse.errors import KernelBuildError
from clfuse.runtime.drivers import compiler, driver_cache
from clfuse.runtime.launches import program
from clfuse.runtime.memory import buffers
from tests.support.queued import AXPY, AXPY_ARGUMENTS

PROGRAM = """
import os
os.umask({umask})
import clfuse as np
x = np.arange(1000.0) + 1
print((x * 2 + x)[:9].tolist())
"""

VALUES = [3.0, 6.0, 9.0, 12.0, 15.0, 18.0, 21.0, 24.0, 27.0]

PLANTED = "open({!r}, 'w').write('planted code ran')\n"


def run(umask: int = 0o022, **variables: str) -> list[str]:
    """Run the program in a process of its own on this device, and return its warnings."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONWARNINGS"}
    finished = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(umask=umask)], capture_output=True, text=True,
        env={**environment, "CLFUSE_HOST_US": "0", **variables}, timeout=120,
    )
    assert finished.returncode == 0, finished.stderr
    assert eval(finished.stdout) == VALUES
    return [line for line in finished.stderr.splitlines() if "Warning" in line]


# -- folders ---------------------------------------------------------------------------------------


def test_caches_are_private_with_any_umask(tmp_path):
    ran = tmp_path / "ran"
    cache = tmp_path / "cache"
    planted = [
        cache / "clfuse" / "templates" / "map.cl.mako-0.py",
        cache / "clfuse" / "programs" / "0",
        cache / "clfuse" / "earned.txt",
        # What pyopencl keeps is made of pickles, and damaged here.
        *(
            cache / "pytools" / f"pdict-v5-pyopencl-invoker-cache-v42-nano-{version}.sqlite"
            for version in (".".join(map(str, sys.version_info)), "3.11.7.final.0")
        ),
    ]
    for path in planted:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.write_text(PLANTED.format(str(ran)))
    assert run(0, XDG_CACHE_HOME=str(cache)) == []
    assert not ran.exists()
    assert not planted[0].exists()
    kept = [cache / "clfuse", *(cache / "clfuse").glob("*")]
    assert not [path for path in kept if path.is_dir() and path.stat().st_mode & 0o077]
    assert [path.read_text() for path in planted[3:]] == [PLANTED.format(str(ran))] * 2
    assert run(0, XDG_CACHE_HOME=str(cache)) == []


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="chown needs root")
def test_another_users_folder_is_neither_read_nor_written(tmp_path):
    tmp_path.chmod(0o755)
    cache = tmp_path / "cache"
    (cache / "clfuse" / "programs").mkdir(parents=True)
    os.chown(cache, 54_321, 54_321)
    # PoCL has a folder: what it does without one is tested below, and takes seconds.
    pocls = {driver_cache.VARIABLE: driver_cache._current} if driver_cache._current else {}
    (warning,) = run(XDG_CACHE_HOME=str(cache), **pocls)
    assert "belongs to another user" in warning
    assert [path.name for path in cache.rglob("*")] == ["clfuse", "programs"]


def test_on_a_full_disk_one_warning_says_so(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", disk], capture_output=True, check=False
    ) if shutil.which("mount") else None
    if mounted is None or mounted.returncode:
        pytest.skip("no disk can be mounted here")
    try:
        with pytest.raises(OSError, match="space"), (disk / "fill").open("wb") as file:
            file.write(bytes(1 << 20))
        (warning,) = run(XDG_CACHE_HOME=str(disk))
    finally:
        subprocess.run(["umount", disk], check=True)
    assert "no compiled kernels" in warning


def test_nothing_is_built_where_pocls_compiler_would_crash(device, monkeypatch):
    if device.platform_name != compiler.POCL:
        pytest.skip("another compiler")
    source = AXPY + "/* not built before */"
    monkeypatch.setattr(driver_cache, "problem_of_build", lambda: "no room in /somewhere")
    with pytest.raises(KernelBuildError, match="no room in /somewhere"):
        program.build(device, source, "axpy", AXPY_ARGUMENTS)
    monkeypatch.undo()
    assert program.build(device, source, "axpy", AXPY_ARGUMENTS)


# -- binaries --------------------------------------------------------------------------------------


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """Where binaries are kept, whatever the driver keeps."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(compiler, "keeps_builds", lambda handle: False)
    return tmp_path / "clfuse" / "programs"


def first_of(device) -> float:
    """Compile and run the kernel: its first result."""
    import pyopencl as cl

    kernel = cl.Kernel(compiler.compile_program(device.context, device.handle, AXPY, ""), "axpy")
    x = buffers.upload(device, np.ones(10, np.float32))
    y = buffers.upload(device, np.zeros(10, np.float32))
    for number, value in enumerate((x.mem, y.mem, np.int32(10), np.float32(2), np.int32(1))):
        dtype = AXPY_ARGUMENTS[number]
        kernel.set_arg(number, value if dtype is None else dtype.type(value))
    cl.enqueue_nd_range_kernel(device.queue, kernel, (1,), (1,))
    return float(buffers.download(y, np.float32, (10,))[0])


def flipped(path: Path, part: float) -> None:
    contents = bytearray(path.read_bytes())
    contents[int(len(contents) * part)] ^= 0x10
    path.write_bytes(contents)


def put(path: Path, make) -> None:
    path.unlink()
    make(path)


def truncated(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(40 << 30)


DAMAGES = {
    "a bit at the start": lambda path: flipped(path, 0.0),
    "a bit at a third": lambda path: flipped(path, 0.33),
    "a bit at the end": lambda path: flipped(path, 0.99),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-9]),
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"more"),
    "as it was kept before": lambda path: path.write_bytes(path.read_bytes()[41:]),
    "a pipe": lambda path: put(path, os.mkfifo),
    "40 GB of nothing": lambda path: put(path, truncated),
    "a link": lambda path: put(path, lambda path: path.symlink_to("/dev/zero")),
}


def test_a_damaged_binary_is_built_again_and_no_driver_sees_it(device, folder, monkeypatch):
    given = []
    built = compiler._built

    def watched(made, handle, options):
        given.append(made)
        return built(made, handle, options)

    monkeypatch.setattr(compiler, "_built", watched)
    assert first_of(device) == 3
    (kept,) = folder.iterdir()
    given.clear()
    assert first_of(device) == 3
    assert len(given) == 1
    assert not given[0].get_info(source_of()), "from the binary"
    for name, damage in DAMAGES.items():
        damage(kept)
        given.clear()
        assert first_of(device) == 3, name
        assert given, name
        assert all(made.get_info(source_of()) for made in given), name
        assert [path.is_file() for path in folder.iterdir()] == [True], name
        assert kept.lstat().st_size < 10_000_000, name
        given.clear()
        assert first_of(device) == 3, name
        assert not given[0].get_info(source_of()), name


def source_of():
    import pyopencl as cl

    return cl.program_info.SOURCE


def test_a_binary_of_another_source_is_not_used(device, folder):
    assert first_of(device) == 3
    (kept,) = folder.iterdir()
    other = kept.with_name("0" * 64)
    kept.rename(other)
    shutil.copy(other, kept)
    assert first_of(device) == 3  # the same contents under their own name
    kept.unlink()
    kept.symlink_to(other)
    assert first_of(device) == 3
    assert not kept.is_symlink()


# -- names -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [program.LONGEST_NAME, 251, 2000])
def test_a_kernel_of_any_name_runs(device, length, monkeypatch):
    import clfuse

    # Not watched: of names that clfuse makes none is that long (tests/support/compiling.py).
    monkeypatch.setattr(program, "compile_program", compiler.compile_program)
    name = "k" * length
    kernel = clfuse.RawKernel(
        f"__kernel void {name}(__global float *x) {{ x[get_global_id(0)] = 3; }}", name
    )
    x = clfuse.zeros(8, clfuse.float32)
    kernel((1,), (8,), (x,))
    assert x.tolist() == [3.0] * 8
    other = clfuse.RawKernel(
        f"__kernel void {name}y(__global float *x) {{ x[get_global_id(0)] = 4; }}", name + "y"
    )
    other((1,), (8,), (x,))
    assert x.tolist() == [4.0] * 8
