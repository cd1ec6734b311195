"""A cache is believed only where it is this user's alone, and a file in it only if it is whole."""

from __future__ import annotations

import os
import socket
import stat
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from clfuse.errors import DeviceWarning
from clfuse.policy import warm_start
from clfuse.runtime.drivers import driver_cache
from clfuse.runtime.files import storage, trust, tuning
from clfuse.target.traits import DeviceTraits

ELSE = 54_321
"""The number of another user."""

CONTENTS = bytes(range(256)) * 4


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    tmp_path.chmod(0o755)
    monkeypatch.setenv(storage.CACHE_VARIABLE, str(tmp_path / "home"))
    monkeypatch.delenv(driver_cache.VARIABLE, raising=False)
    storage.forget()
    warm_start.forget()
    yield tmp_path / "home"
    storage.forget()
    warm_start.forget()


@pytest.fixture
def umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture
def owners(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Path -> the number of the user whom it belongs to, as `os.lstat` and `os.fstat` say."""
    given: dict[str, int] = {}
    real, real_of_handle = os.lstat, os.fstat

    def changed(found: os.stat_result, path: str) -> os.stat_result:
        if path not in given:
            return found
        fields = list(found[:10])
        fields[4] = given[path]
        return os.stat_result(fields)

    monkeypatch.setattr(trust.os, "lstat", lambda path: changed(real(path), str(path)))
    monkeypatch.setattr(
        storage.os, "fstat",
        lambda handle: changed(real_of_handle(handle), os.path.realpath(f"/proc/self/fd/{handle}")),
    )
    return given


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def refused(words: str) -> None:
    """There is no cache, one warning says why, and there is none the second time, without one."""
    with pytest.warns(DeviceWarning, match=words):
        assert storage.cache_folder() is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert storage.cache_folder() is None
        assert storage.subfolder("programs") is None
        warm_start.note("0" * 32)
        assert warm_start.is_known("0" * 32)  # in this process


# -- folders ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("mask", [0o000, 0o002, 0o022, 0o777])
def test_folders_and_files_are_private_whatever_the_umask(home: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        folder = storage.subfolder("programs")
        assert folder is not None
        storage.write_checked(folder / "one", CONTENTS)
        warm_start.note("0" * 32)
        assert storage.read_checked(folder / "one", 1 << 20) == CONTENTS
    finally:
        os.umask(before)
    assert folder == home / "clfuse" / "programs"
    assert [mode_of(path) for path in (home, home / "clfuse", folder)] == [0o700] * 3
    assert not any(mode_of(path) & 0o077 for path in home.rglob("*"))


def test_a_folder_that_others_read_is_closed_and_kept(home: Path) -> None:
    (home / "clfuse").mkdir(parents=True)
    (home / "clfuse").chmod(0o755)
    assert storage.cache_folder() == home / "clfuse"
    assert mode_of(home / "clfuse") == 0o700
    assert mode_of(home) & 0o022 == 0


@pytest.mark.parametrize("mode", [0o777, 0o707, 0o1777])
def test_a_folder_that_others_write_is_not_believed(home: Path, mode: int) -> None:
    (home / "clfuse").mkdir(parents=True)
    (home / "clfuse").chmod(mode)
    refused(f"home/clfuse may be written by others .mode {mode:o}")


def test_a_folder_within_ours_that_others_write_is_not_believed(home: Path) -> None:
    (home / "clfuse" / "programs").mkdir(parents=True)
    (home / "clfuse" / "programs").chmod(0o777)
    assert storage.cache_folder() == home / "clfuse"
    with pytest.warns(DeviceWarning, match="programs may be written"):
        assert storage.subfolder("programs") is None


def test_a_writer_of_a_folder_above_could_replace_it(home: Path) -> None:
    home.mkdir()
    home.chmod(0o777)
    refused("home may be written by others")
    home.chmod(0o1777)  # the sticky bit keeps them from it, as in /tmp
    storage.forget()
    assert storage.cache_folder() == home / "clfuse"


def test_a_group_that_may_write_has_no_other_member(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.mkdir()
    home.chmod(0o770)
    monkeypatch.setattr(trust, "_is_private_group", lambda number: False)
    refused("home may be written by others")
    monkeypatch.undo()
    monkeypatch.setenv(storage.CACHE_VARIABLE, str(home))
    monkeypatch.setattr(trust, "_is_private_group", lambda number: number == home.stat().st_gid)
    storage.forget()
    assert storage.cache_folder() == home / "clfuse"


def test_which_groups_are_private(monkeypatch: pytest.MonkeyPatch) -> None:
    import grp
    import pwd

    me = pwd.struct_passwd(("me", "x", os.geteuid(), 77, "", "/", "/bin/sh"))
    monkeypatch.setattr(pwd, "getpwuid", lambda number: me)
    groups = {77: ("me", []), 78: ("staff", ["me"]), 79: ("me", [])}

    def group(number: int) -> grp.struct_group:
        name, members = groups[number]
        return grp.struct_group((name, "x", number, members))

    monkeypatch.setattr(grp, "getgrgid", group)
    assert [trust._is_private_group(n) for n in (0, 77, 78, 79, 80)] == [
        True, True, False, False, False,
    ]
    groups[77] = ("me", ["me", "guest"])
    assert not trust._is_private_group(77)


@pytest.mark.parametrize("which", ["home", "home/clfuse"])
def test_another_users_folder_is_not_believed(
    home: Path, owners: dict[str, int], which: str
) -> None:
    (home / "clfuse").mkdir(parents=True)
    owners[str(home.parent / which)] = ELSE
    refused(f"{which} belongs to another user .number {ELSE}")


def test_roots_folders_and_their_owner_are_believed(
    home: Path, owners: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "clfuse").mkdir(parents=True)
    monkeypatch.setattr(trust.os, "geteuid", lambda: ELSE)
    for place in (home, *home.parents):
        owners[str(place)] = ELSE + 1
    owners[str(home / "clfuse")] = 0
    assert trust.trouble_with(str(home / "clfuse")) == ""
    owners[str(home / "clfuse")] = ELSE + 1
    assert "another user" in trust.trouble_with(str(home / "clfuse"))


def test_a_link_is_followed_once_to_a_folder_that_is_checked(home: Path) -> None:
    place = home.parent / "disk"
    place.mkdir()
    home.symlink_to(place)
    assert storage.cache_folder() == place / "clfuse"
    place.chmod(0o777)
    storage.forget()
    refused("disk may be written by others")


def test_a_file_in_the_place_of_a_folder_is_not_removed(home: Path) -> None:
    home.mkdir()
    (home / "clfuse").write_text("somebody's")
    refused("is no folder")
    assert (home / "clfuse").read_text() == "somebody's"


@pytest.mark.parametrize("variables", [
    {storage.CACHE_VARIABLE: "/proc/nowhere"},
    {storage.CACHE_VARIABLE: "nowhere"},
    {storage.CACHE_VARIABLE: "", "HOME": ""},
])
def test_without_a_folder_there_is_no_cache(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    refused("/proc/nowhere|no home")


def test_python_that_earlier_versions_kept_is_removed_unread(home: Path) -> None:
    planted = home / "clfuse" / "templates" / "map.cl.mako-0.py"
    planted.parent.mkdir(parents=True)
    planted.write_text("raise SystemExit('planted')")
    assert storage.cache_folder() == home / "clfuse"
    assert not planted.parent.exists()


# -- files -----------------------------------------------------------------------------------------


@pytest.fixture
def file() -> Path:
    folder = storage.subfolder("programs")
    assert folder is not None
    storage.write_checked(folder / "file", CONTENTS)
    return folder / "file"


def test_a_file_with_one_flipped_bit_is_removed(file: Path) -> None:
    whole = file.read_bytes()
    assert storage.read_checked(file, len(CONTENTS)) == CONTENTS
    for place in range(0, len(whole), 3):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << place % 8
        file.write_bytes(damaged)
        assert storage.read_checked(file, len(CONTENTS)) is None, place
        assert not file.exists()


@pytest.mark.parametrize("damage", [
    lambda whole: b"",
    lambda whole: whole[:1],
    lambda whole: whole[:-1],
    lambda whole: whole[:60],
    lambda whole: whole + b"\0",
    lambda whole: whole * 2,
    lambda whole: whole[-len(CONTENTS):],
    lambda whole: bytes(len(whole)),
])
def test_a_file_of_another_length_is_removed(file: Path, damage) -> None:
    file.write_bytes(damage(file.read_bytes()))
    assert storage.read_checked(file, 1 << 20) is None
    assert not file.exists()


def test_a_file_of_another_name_or_too_large_is_removed(file: Path) -> None:
    other = file.with_name("other")
    os.link(file, other)
    assert storage.read_checked(other, 1 << 20) is None
    assert storage.read_checked(file, len(CONTENTS) - 1) is None
    assert not list(file.parent.iterdir())


def put_pipe(path: Path) -> None:
    os.mkfifo(path)


def put_link(path: Path) -> None:
    elsewhere = path.parent.parent / "elsewhere"
    storage.write_checked(elsewhere, CONTENTS)
    path.symlink_to(elsewhere)


def put_dangling_link(path: Path) -> None:
    path.symlink_to(path.parent / "nowhere")


def put_sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(40 << 30)


def put_socket(path: Path) -> None:
    before = os.getcwd()
    os.chdir(path.parent)  # its address is short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(before)


def put_open_file(path: Path) -> None:
    path.write_bytes(CONTENTS)
    path.chmod(0o666)


SPECIAL = [put_pipe, put_link, put_dangling_link, put_sparse, put_socket, put_open_file]


@pytest.mark.parametrize("put", SPECIAL)
def test_what_is_no_file_of_ours_is_removed_unread(file: Path, put) -> None:
    file.unlink()
    put(file)
    assert storage.read_checked(file, 1 << 20) is None
    assert not os.path.lexists(file)
    storage.write_checked(file, CONTENTS)
    assert storage.read_checked(file, 1 << 20) == CONTENTS


@pytest.mark.parametrize("put", SPECIAL)
def test_earned_kernels_are_noted_whatever_is_in_that_place(home: Path, put) -> None:
    folder = storage.cache_folder()
    assert folder is not None
    path = folder / warm_start.FILE_NAME
    put(path)
    assert not warm_start.is_known("a" * 32)
    warm_start.note("a" * 32)
    warm_start.forget()
    assert warm_start.is_known("a" * 32)
    assert path.lstat().st_size < 1 << 20
    assert stat.S_ISREG(path.lstat().st_mode)


@pytest.mark.parametrize("put", [put for put in SPECIAL if put is not put_dangling_link])
def test_a_tuning_file_that_is_none_is_said_to_be_wrong_once(home: Path, put) -> None:
    traits = DeviceTraits(name="Some CPU")
    path = tuning.path_of(traits)
    assert path is not None
    put(path)
    tuning._warned.clear()
    with pytest.warns(DeviceWarning, match="defaults"):
        assert tuning.apply(traits) is traits
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tuning.apply(traits) is traits


def test_another_users_file_is_not_believed(file: Path, owners: dict[str, int]) -> None:
    owners[str(file)] = ELSE
    assert storage.read_checked(file, 1 << 20) is None


def test_a_cache_that_was_cleared_is_made_again_private(home: Path, umask: None) -> None:
    import shutil

    folder = storage.subfolder("programs")
    assert folder is not None
    shutil.rmtree(home)
    storage.write_checked(folder / "file", CONTENTS)
    assert storage.read_checked(folder / "file", 1 << 20) == CONTENTS
    assert [mode_of(path) for path in (home, home / "clfuse", folder)] == [0o700] * 3


# -- the folder of PoCL ----------------------------------------------------------------------------


def shown() -> str | None:
    with driver_cache.environment():
        return os.environ.get(driver_cache.VARIABLE)


def test_pocl_gets_a_folder_in_ours_and_its_variable_back(home: Path) -> None:
    assert shown() == str(home / "clfuse" / "pocl")
    assert driver_cache.VARIABLE not in os.environ
    assert driver_cache.problem_of_build() == ""


def test_the_users_folder_is_kept_with_its_mode_if_it_is_his(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "mine"
    place.mkdir(mode=0o755)
    (place / "templates").mkdir()
    monkeypatch.setenv(driver_cache.VARIABLE, str(place))
    assert shown() == str(place) == os.environ[driver_cache.VARIABLE]
    assert mode_of(place) == 0o755
    assert (place / "templates").exists()


def test_a_folder_that_others_write_becomes_a_temporary_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "everybodys"
    place.mkdir()
    place.chmod(0o777)
    monkeypatch.setenv(driver_cache.VARIABLE, str(place))
    with pytest.warns(DeviceWarning, match="everybodys may be written"):
        given = shown()
    assert given is not None
    assert given != str(place)
    assert mode_of(Path(given)) == 0o700
    assert os.environ[driver_cache.VARIABLE] == str(place)
    assert driver_cache.problem_of_build() == ""
    storage._remove(given, os.getpid() + 1)  # a process that was forked leaves it
    assert os.path.isdir(given)
    storage._remove(given, os.getpid())
    assert not os.path.exists(given)


class Disk:
    f_blocks, f_frsize = 1000, 4096

    def __init__(self, nbytes: int, flags: int = 0) -> None:
        self.f_bavail = nbytes // 4096
        self.f_flag = flags


@pytest.mark.skipif(not hasattr(os, "ST_NOEXEC"), reason="disks do not say so here")
def test_a_disk_that_runs_no_programs_is_left_for_another(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        storage.os, "statvfs",
        lambda place: Disk(1 << 40, os.ST_NOEXEC if str(home) in str(place) else 0),
    )
    with pytest.warns(DeviceWarning, match="no machine code"):
        given = shown()
    assert given is not None
    assert str(home) not in given
    storage._remove(given, os.getpid())
    monkeypatch.setattr(storage.os, "statvfs", lambda place: Disk(1 << 40, os.ST_NOEXEC))
    assert storage.temporary_folder(1) is None


def test_a_full_disk_is_left_and_nothing_is_built_on_one(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = driver_cache.ROOM_AT_START - 1
    monkeypatch.setattr(
        storage.os, "statvfs", lambda place: Disk(left if str(home) in str(place) else 1 << 40)
    )
    with pytest.warns(DeviceWarning, match="64 MiB are left"):
        given = shown()
    assert given is not None
    assert str(home) not in given
    assert driver_cache.problem_of_build() == ""
    monkeypatch.setattr(storage.os, "statvfs", lambda place: Disk(driver_cache.ROOM_FOR_BUILD - 1))
    assert "8 MiB are left" in driver_cache.problem_of_build()
    storage._remove(given, os.getpid())
    # Nowhere is there room: PoCL does as it will, and nothing is built.
    storage.forget()
    with pytest.warns(DeviceWarning, match="64 MiB are left"):
        assert shown() is None


def test_where_nothing_can_be_written_one_warning_says_so(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = storage.cache_folder()
    assert folder is not None

    def full(*arguments: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(storage.os, "replace", full)
    monkeypatch.setattr(storage.os, "write", full)
    with pytest.warns(DeviceWarning, match="No space left"):
        warm_start.note("b" * 32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warm_start.note("c" * 32)
    with pytest.raises(OSError, match="No space"):
        storage.write_checked(folder / "file", CONTENTS)
    assert not (folder / "file").exists()
    assert warm_start.is_known("b" * 32)
