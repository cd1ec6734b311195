"""The folder of drivers that the OpenCL loader is shown: what is in it, and where it is."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from clfuse import config
from clfuse.errors import DeviceWarning
from clfuse.runtime.drivers import vendors
from clfuse.runtime.files import storage

VARIABLE = "OCL_ICD_VENDORS"


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """A machine with one driver in the system's folder, a cache, and no other drivers."""
    system = tmp_path / "system"
    system.mkdir()
    (system / "pocl.icd").write_text("libpocl.so.2\n")
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.delenv("OPENCL_VENDOR_PATH", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(vendors, "SYSTEM_FOLDER", system)
    monkeypatch.setattr(vendors, "_library_folders", lambda: iter(()))
    monkeypatch.setattr(vendors, "NVIDIA_FOLDERS", ())
    monkeypatch.setattr(vendors, "NVIDIA_LIBRARY", "libnvidia-opencl-that-is-nowhere.so")
    return tmp_path


def add_intel(monkeypatch, tmp_path: Path) -> Path:
    """Put a file in the place of Intel's runtime."""
    library = tmp_path / "lib" / vendors.INTEL_LIBRARY
    library.parent.mkdir()
    library.write_bytes(b"")
    monkeypatch.setattr(vendors, "_library_folders", lambda: iter([library.parent]))
    return library


def shown() -> dict[str, str]:
    """What the loader would read now."""
    with vendors.loader_environment():
        folder = Path(os.environ[VARIABLE])
        return {file.name: file.read_text().strip() for file in folder.iterdir()}


def test_nothing_is_set_where_there_is_nothing_to_add(machine):
    with vendors.loader_environment():
        assert VARIABLE not in os.environ


def test_the_environments_runtime_is_shown_beside_the_systems(machine, monkeypatch):
    library = add_intel(monkeypatch, machine)
    assert shown() == {"pocl.icd": "libpocl.so.2", "clfuse-libintelocl.icd": str(library)}
    assert shown() == vendors.drivers()


def test_the_variable_is_put_back_unset_or_as_it_was(machine, monkeypatch):
    add_intel(monkeypatch, machine)
    shown()
    assert VARIABLE not in os.environ
    own = machine / "own"
    own.mkdir()
    (own / "other.icd").write_text("/opt/libother.so\n")
    monkeypatch.setenv(VARIABLE, str(own))
    assert set(shown()) == {"other.icd", "clfuse-libintelocl.icd"}
    assert os.environ[VARIABLE] == str(own)


def test_a_runtime_that_the_system_lists_is_not_added_again(machine, monkeypatch):
    library = add_intel(monkeypatch, machine)
    (machine / "system" / "intel.icd").write_text(f"{library}\n")
    with vendors.loader_environment():
        assert VARIABLE not in os.environ


def test_the_users_choice_of_an_icd_file_or_library_is_kept(machine, monkeypatch):
    library = add_intel(monkeypatch, machine)
    monkeypatch.setenv(VARIABLE, str(machine / "system" / "pocl.icd"))
    assert shown() == {"pocl.icd": "libpocl.so.2", "clfuse-libintelocl.icd": str(library)}
    monkeypatch.setenv(VARIABLE, "libother.so")
    assert shown() == {"system.icd": "libother.so", "clfuse-libintelocl.icd": str(library)}


def test_the_setting_system_adds_nothing(machine, monkeypatch):
    add_intel(monkeypatch, machine)
    with config.override(vendors="system"), vendors.loader_environment():
        assert VARIABLE not in os.environ
        assert vendors.drivers() == {"pocl.icd": "libpocl.so.2"}


def test_an_nvidia_driver_without_its_icd_is_added(machine, monkeypatch):
    mounted = machine / "nvidia" / vendors.NVIDIA_LIBRARY
    mounted.parent.mkdir()
    mounted.write_bytes(b"")
    monkeypatch.setattr(vendors, "NVIDIA_FOLDERS", (str(mounted.parent),))
    assert str(mounted) in shown().values()
    (machine / "system" / "nvidia.icd").write_text("libnvidia-opencl.so.1\n")
    with vendors.loader_environment():
        assert VARIABLE not in os.environ


def test_the_folder_is_written_once_and_when_drivers_change(machine, monkeypatch):
    add_intel(monkeypatch, machine)
    shown()
    (first,) = (machine / "cache" / "clfuse").iterdir()
    written = first.stat().st_mtime_ns
    shown()
    assert [first] == list((machine / "cache" / "clfuse").iterdir())
    assert first.stat().st_mtime_ns == written
    (machine / "system" / "new.icd").write_text("libnew.so\n")
    assert "new.icd" in shown()


def test_a_damaged_folder_is_not_trusted(machine, monkeypatch):
    library = add_intel(monkeypatch, machine)
    shown()
    (folder,) = (machine / "cache" / "clfuse").iterdir()
    (folder / "clfuse-libintelocl.icd").write_text("/somewhere/else.so\n")
    assert shown()["clfuse-libintelocl.icd"] == str(library)
    # The loader would load whatever is listed there.
    (folder / "planted.icd").write_text("/somewhere/planted.so\n")
    assert set(shown()) == {"pocl.icd", "clfuse-libintelocl.icd"}
    (folder / "pocl.icd").unlink()
    os.mkfifo(folder / "pocl.icd")
    assert shown()["pocl.icd"] == "libpocl.so.2"
    assert list((machine / "cache" / "clfuse").iterdir()) == [folder]


@pytest.mark.parametrize("cache", ["/proc/nowhere", "/dev/null"])
def test_without_a_place_for_a_cache_a_temporary_folder_serves(machine, monkeypatch, cache):
    library = add_intel(monkeypatch, machine)
    monkeypatch.setenv("XDG_CACHE_HOME", cache)
    storage.forget()
    with pytest.warns(DeviceWarning, match=cache):
        assert shown()["clfuse-libintelocl.icd"] == str(library)


def test_a_user_without_a_home_has_no_cache_folder(monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    storage.forget()
    with pytest.warns(DeviceWarning, match="no home"):
        assert storage.cache_folder() is None


def test_a_driver_that_does_not_load_has_the_linkers_words(machine):
    broken = machine / "libbroken.so"
    broken.write_bytes(b"not a library")
    (machine / "system" / "pocl.icd").write_text(f"{broken}\n")
    ((file, library, words),) = vendors.load_errors()
    assert (file, library) == ("pocl.icd", str(broken))
    assert "libbroken.so" in words


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "deep" / "file"
    storage.write_whole(path, b"one")
    storage.write_whole(path, b"two")
    assert path.read_bytes() == b"two"
    assert list(path.parent.iterdir()) == [path]
    with pytest.raises(OSError, match="file"):
        storage.write_whole(path / "below-a-file", b"three")


def test_intels_runtime_is_found_by_its_wheels_list(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    packages, libraries = tmp_path / "packages", tmp_path / "elsewhere"
    listed = packages / "intel_opencl_rt-2026.2.0.dist-info"
    listed.mkdir(parents=True)
    libraries.mkdir()
    (libraries / "libintelocl.so").touch()
    (listed / "RECORD").write_text(
        "../elsewhere/libintelocl.so-gdb.py,sha256=x,1\n../elsewhere/libintelocl.so,sha256=y,2\n"
    )
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "prefix"))
    monkeypatch.setattr(vendors.site, "ENABLE_USER_SITE", False)
    monkeypatch.setattr(sys, "path", [str(tmp_path / "missing"), str(packages)])
    assert list(vendors._library_folders())[1:] == [libraries]
    assert vendors._intel_drivers() == [libraries / "libintelocl.so"]
    (listed / "RECORD").unlink()
    assert vendors._intel_drivers() == []
