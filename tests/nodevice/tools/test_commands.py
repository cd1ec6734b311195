"""The commands beside ``run``: what they print, and what they refuse."""

import os

from clfuse.tools.caches import summary
from tests.support.processes import python


def test_commands_are_listed_and_unknown_ones_refused(tmp_path):
    listed = python("-m", "clfuse", "--help", cwd=tmp_path)
    assert listed.returncode == 0
    for command in ("run", "demo", "devices", "doctor", "bench", "cache"):
        assert f"  {command} " in listed.stdout
    refused = python("-m", "clfuse", "nonsense", cwd=tmp_path)
    assert refused.returncode == 2
    assert "nonsense" in refused.stderr


def test_caches_are_shown_and_cleared(tmp_path):
    kept = tmp_path / "pocl" / "kcache" / "kernel"
    database = tmp_path / "pytools" / "pdict-v5-pyopencl-invoker-cache-v42-nano-3.12.1.sqlite"
    others = tmp_path / "pytools" / "pdict-v5-loopy-typed-3.12.1.sqlite"
    for path in (tmp_path / "clfuse" / "file", tmp_path / "pyopencl" / "file", kept, database,
                 database.with_name(f"{database.name}-journal"), others):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * 100)
    os.mkfifo(tmp_path / "clfuse" / "pipe")
    (tmp_path / "clfuse" / "link").symlink_to(kept.parent, target_is_directory=True)
    variables = {"XDG_CACHE_HOME": str(tmp_path), "POCL_CACHE_DIR": str(kept.parent)}
    shown = python("-m", "clfuse", "cache", cwd=tmp_path, **variables)
    assert shown.stdout.count("1 files") == 2
    assert "3 files" in shown.stdout
    assert shown.stdout.count("pytools") == 2 * 2
    cleared = python("-m", "clfuse", "cache", "clear", cwd=tmp_path, **variables)
    assert cleared.returncode == 0
    assert not (tmp_path / "clfuse").exists()
    assert not (tmp_path / "pyopencl").exists()
    assert list((tmp_path / "pytools").iterdir()) == [others]
    assert kept.exists()
    again = python("-m", "clfuse", "cache", "clear", cwd=tmp_path, **variables)
    assert again.returncode == 0
    assert "none yet" in again.stdout


def test_bench_and_demo_list_their_programs_without_a_device(tmp_path):
    variables = {"OCL_ICD_VENDORS": str(tmp_path), "CLFUSE_VENDORS": "system"}
    bench = python("-m", "clfuse", "bench", "--list", cwd=tmp_path, **variables)
    assert bench.returncode == 0
    assert "black_scholes_f32" in bench.stdout
    demo = python("-m", "clfuse", "demo", "--list", cwd=tmp_path, **variables)
    assert demo.returncode == 0
    assert "heat.py" in demo.stdout


def test_bench_refuses_what_it_does_not_know(tmp_path):
    finished = python("-m", "clfuse", "bench", "nonsense", cwd=tmp_path)
    assert finished.returncode == 2
    assert "no program nonsense; there are triad" in finished.stderr


def test_doctor_without_a_device_says_what_to_install(tmp_path):
    finished = python(
        "-m",
        "clfuse",
        "doctor",
        cwd=tmp_path,
        OCL_ICD_VENDORS=str(tmp_path),
        CLFUSE_VENDORS="system",
        HOME=str(tmp_path),  # it looks through all caches
        XDG_CACHE_HOME=str(tmp_path),
    )
    assert finished.returncode == 1
    assert "no usable device" in finished.stdout
    assert "install" in finished.stdout


def test_a_large_cache_is_counted_as_far_as_there_is_time(tmp_path):
    for number in range(5):
        (tmp_path / f"{number}.bin").write_bytes(b"0" * 2**19)
    assert summary(tmp_path) == f"{tmp_path}: 5 files, 2.5 MiB"
    assert summary(tmp_path, 0.0) == f"{tmp_path}: more than 1 files, more than 0.5 MiB"
    assert summary(tmp_path / "nothing") == f"{tmp_path / 'nothing'}: none yet"
