"""Files: hostile ones are refused as NumPy refuses them, others hold what they hold under NumPy."""

from __future__ import annotations

import ast
import io
import pickle
import struct
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.support.agreement import assert_bitwise, host, is_recorded
from tests.support.processes import python


def saved(array: Any, **options: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, **options)
    return stream.getvalue()


def archived(**arrays: Any) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def headed(text: str, data: bytes = b"\0" * 48, version: tuple[int, int] = (1, 0)) -> bytes:
    """A file with this for a header."""
    header = text.encode("latin1")
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    length = struct.pack("<H" if version == (1, 0) else "<I", len(header))
    return b"\x93NUMPY" + bytes(version) + length + header + data


def shaped(shape: str, **options: Any) -> bytes:
    return headed(f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}", **options)


def zipped(**members: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, contents in members.items():
            archive.writestr(f"{name}.npy", contents)
    return stream.getvalue()


GOOD = saved(np.arange(6.0).reshape(2, 3))

FILES: dict[str, bytes] = {
    "good": GOOD,
    "truncated": GOOD[:-8],
    "truncated in its header": GOOD[:30],
    "empty": b"",
    "wrong magic": b"\x93NUMPX" + GOOD[6:],
    "text": b"hello world",
    "version 9": GOOD[:6] + bytes((9, 0)) + GOOD[8:],
    "header is a list": headed("[1, 2]"),
    "header lacks keys": headed("{'descr': '<f8'}"),
    "header is code": headed("__import__('os').system('true')"),
    "header does not end": headed("{'descr': '<f8', "),
    "shape is negative": shaped("(-1,)"),
    "shape overflows": shaped("(9223372036854775807, 9223372036854775807)"),
    "shape is an expression": shaped("(2**70,)"),
    "shape is text": shaped("('a',)"),
    "shape is a float": shaped("(2.0,)"),
    "nothing in many": shaped("(0, 99999999999999)"),
    "unknown dtype": headed("{'descr': 'nonsense', 'fortran_order': False, 'shape': (2,), }"),
    "order is text": headed("{'descr': '<f8', 'fortran_order': 'x', 'shape': (2,), }"),
    "huge header": shaped("(6,)" + " " * 20_000, version=(2, 0)),
    "objects": saved(np.array([{}, 1], object)),
    "pickle": pickle.dumps([1, 2]),
    "Fortran order": saved(np.asfortranarray(np.arange(6.0).reshape(2, 3))),
    "no elements": saved(np.zeros((0, 3))),
    "big-endian": saved(np.arange(3, dtype=">f4")),
    "structured": saved(np.zeros(2, [("a", "i4"), ("b", "f8")])),
    "archive": archived(a=np.arange(3.0), b=np.array([{}], object), c=np.array(["x"])),
    "archive cut": archived(a=np.arange(3.0))[:-30],
    "archive of nothing": zipped(),
    "archive of hostile members": zipped(a=GOOD[:-8], b=b"\x93NUMPX" + GOOD[6:], c=b""),
}

LYING = {
    "more than there is": "(1000000000,)",
    "more than memory": "(1000000000000,)",
    "more than addresses": "(100000000, 100000000)",
}


def outcome(call: Callable[[], Any]) -> Any:
    """dtype, shape and elements of what is read, by member of an archive; or the exception."""
    try:
        found = call()
    except Exception as error:
        return type(error)
    if hasattr(found, "files"):
        with found:
            return [(name, outcome(lambda name=name: found[name])) for name in found.files]
    if isinstance(found, bytes):
        return found
    values = host(found)
    return str(found.dtype), tuple(found.shape), repr(values.tolist()), values.flags.f_contiguous


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # NumPy leaves broken ones open
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("mode", [None, "r"])
def test_hostile_files_are_refused_as_numpy_refuses_them(
    xp: ModuleType, tmp_path: Path, name: str, mode: str | None
) -> None:
    path = tmp_path / "file.npy"
    path.write_bytes(FILES[name])
    expected = outcome(lambda: np.load(path, mmap_mode=mode))
    assert outcome(lambda: xp.load(path, mmap_mode=mode)) == expected
    if mode is None:
        stream = io.BytesIO(FILES[name])
        assert outcome(lambda: xp.load(stream)) == outcome(
            lambda: np.load(io.BytesIO(FILES[name])))


@pytest.mark.clfuse_only
@pytest.mark.parametrize("shape", LYING.values(), ids=LYING)
def test_nothing_is_allocated_of_what_a_header_claims(
    xp: ModuleType, tmp_path: Path, shape: str
) -> None:
    path = tmp_path / "file.npy"
    path.write_bytes(shaped(shape))
    archive = xp.load(io.BytesIO(zipped(a=shaped(shape))))
    xp.load(io.BytesIO(GOOD))  # imports what it needs
    calls = [lambda: xp.load(path), lambda: xp.load(io.BytesIO(shaped(shape))),
             lambda: xp.load(path, mmap_mode="r"), lambda: archive["a"]]
    tracemalloc.start()
    try:
        for call in calls:
            with pytest.raises(ValueError, match=r"header claims \d+ bytes"):
                call()
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_what_is_read_is_an_array_of_the_module(xp: ModuleType, tmp_path: Path) -> None:
    array = np.arange(20_000.0).reshape(2, 10_000)
    for made in (xp.load(io.BytesIO(saved(array))), xp.load(io.BytesIO(archived(a=array)))["a"]):
        assert is_recorded(xp, made) == (xp is not np)
        made += 1
        assert_bitwise(made, array + 1)
    with xp.load(io.BytesIO(archived(a=array, b=array[0]))) as archive:
        assert sorted(archive) == ["a", "b"]
        assert "a" in archive
        with pytest.raises(KeyError):
            archive["c"]


@pytest.mark.clfuse_only
def test_a_mapped_file_is_read_where_it_lies(xp: ModuleType, tmp_path: Path) -> None:
    array = np.arange(100_000.0).reshape(100, 1000)
    np.save(tmp_path / "a.npy", array)
    before = xp.stats()["bytes_to_device"]
    mapped = xp.load(tmp_path / "a.npy", mmap_mode="r")
    assert isinstance(mapped, np.memmap)
    made = xp.asarray(mapped)
    assert_bitwise(xp.sqrt(made) + mapped, np.sqrt(array) + array)
    if xp.get_device().traits.unified_memory:
        assert xp.stats()["bytes_to_device"] == before
    made[0] = -1.0  # copied before it is written to: the file stays
    assert_bitwise(made[0], np.full(1000, -1.0))
    assert_bitwise(np.load(tmp_path / "a.npy"), array)
    changing = np.load(tmp_path / "a.npy", mmap_mode="r+")
    copied = xp.asarray(changing)
    changing[:] = 0
    assert_bitwise(copied, array)


@pytest.mark.clfuse_only
@pytest.mark.parametrize("offset", [0, 8, 64, 240])
@pytest.mark.parametrize(
    "look",
    ["str(x)", "m.asnumpy(x)", "x[:3].tolist()", "float(x.sum())", "(x @ x).tolist()",
     "m.sort(x)[:3].tolist()", "x.tobytes()[:8]"],
)  # fmt: skip
def test_a_mapped_file_is_looked_at_wherever_it_begins(
    xp: ModuleType, tmp_path: Path, offset: int, look: str
) -> None:
    values = np.arange(400_000.0)
    (tmp_path / "raw").write_bytes(b"\0" * offset + values.tobytes())
    mapped = np.memmap(tmp_path / "raw", dtype=float, mode="r", offset=offset)
    made = xp.asarray(mapped)
    expected = eval(look, {"m": xp, "x": xp.asarray(values)})
    for _ in range(2):  # also after a kernel has read it
        assert str(eval(look, {"m": xp, "x": made})) == str(expected)
        assert float((made * 2).sum()) == values.sum() * 2


LOOKING_FIRST = """
import clfuse, numpy
x = clfuse.asarray(numpy.memmap("raw", dtype=float, mode="r", offset=8))
print(x, clfuse.asnumpy(x)[-1], x.tobytes()[8:16].hex())
"""


def test_a_mapped_file_is_looked_at_before_any_kernel_runs(tmp_path: Path) -> None:
    # Intel's runtime writes to memory that it maps, if nothing has run on the device.
    (tmp_path / "raw").write_bytes(np.arange(400_001.0).tobytes())
    found = python("-c", LOOKING_FIRST, cwd=tmp_path)
    assert (found.returncode, found.stderr) == (0, "")
    assert found.stdout.endswith("400000.0 " + np.float64(2).tobytes().hex() + "\n")


TEXTS: dict[str, str] = {
    "loadtxt": "m.loadtxt(io.StringIO('1 2\\n3 4'))",
    "loadtxt: letters": "m.loadtxt(io.StringIO('1 2\\n3 x'))",
    "loadtxt: ragged": "m.loadtxt(io.StringIO('1 2\\n3'))",
    "loadtxt: no file": "m.loadtxt('nofile')",
    "loadtxt: no such column": "m.loadtxt(io.StringIO('1 2'), usecols=(5,))",
    "loadtxt: nothing": "m.loadtxt(io.StringIO(''))",
    "loadtxt: dtype": "m.loadtxt(io.StringIO('1 2'), dtype='nonsense')",
    "loadtxt: columns": "m.loadtxt(io.StringIO('1,2\\n3,4'), delimiter=',', unpack=True)",
    "genfromtxt: ragged": "m.genfromtxt(io.StringIO('1 2\\n3'))",
    "genfromtxt: letters": "m.genfromtxt(io.StringIO('1,x\\n3,4'), delimiter=',')",
    "genfromtxt: names": "m.genfromtxt(io.StringIO('a,b\\n1,2'), delimiter=',', names=True)",
    "frombuffer: odd": "m.frombuffer(b'123')",
    "frombuffer: offset": "m.frombuffer(b'12345678', offset=99)",
    "frombuffer: negative offset": "m.frombuffer(b'12345678', offset=-1)",
    "frombuffer: count": "m.frombuffer(b'12345678', count=5)",
    "frombuffer: nothing": "m.frombuffer(b'')",
    "frombuffer: text": "m.frombuffer('text')",
    "frombuffer: objects": "m.frombuffer(b'12345678', dtype='O')",
    "frombuffer: big-endian": "m.frombuffer(bytearray(16), '>i4')",
    "frombuffer: an array": "m.frombuffer(m.arange(3.0))",
    "fromstring: letters": "m.fromstring('1 2 x', sep=' ')",
    "fromstring: binary": "m.fromstring('1 2', sep='')",
    "fromstring": "m.fromstring('1,2,3', sep=',')",
    "fromfile: no file": "m.fromfile('nofile')",
    "fromfile: offset": "m.fromfile('good.npy', offset=10**9)",
    "fromfile: objects": "m.fromfile('good.npy', dtype='O')",
    "fromfile: stream": "m.fromfile(io.BytesIO(b'12'))",
    "fromfile": "m.fromfile('good.npy', 'u1', 3)",
    "tofile: no folder": "m.arange(3.0).tofile('/nofolder/x')",
    "tofile: no file": "m.arange(3.0).tofile(5.5)",
    "save: no folder": "m.save('/nofolder/x', m.arange(3.0))",
    "save: no path": "m.save(5, m.arange(3.0))",
    "save: objects": "m.save('o', np.array([{}], object), allow_pickle=False)",
    "savez: a name twice": "m.savez('z', m.arange(3.0), arr_0=m.ones(2))",
    "savetxt: formats": "m.savetxt('t', m.arange(3.0), fmt='%d %d')",
    "savetxt: three axes": "m.savetxt('t', m.ones((2, 2, 2)))",
    "savetxt: no folder": "m.savetxt('/nofolder/t', m.ones(2))",
    "savetxt: no format": "m.savetxt('t', m.ones((2, 2)), fmt='nonsense')",
    "memmap: no file": "m.memmap('nofile')",
    "memmap: too long": "m.memmap('good.npy', shape=(10**12,), mode='r')",
    "memmap: mode": "m.memmap('good.npy', mode='zz')",
    "memmap as operand": "m.add(m.memmap('good.npy', dtype='u1', mode='r'), 1)",
    "load: no file": "m.load('nofile')",
    "load: no path": "m.load(5)",
    "load: mode": "m.load('good.npy', mmap_mode='x')",
    "load: encoding": "m.load('good.npy', encoding='nonsense')",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_texts_buffers_and_raw_files_are_read_as_by_numpy(
    xp: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("good.npy").write_bytes(GOOD)
    code = compile(ast.parse(text, mode="eval"), "case", "eval")
    expected, actual = (
        outcome(lambda m=m: eval(code, {"m": m, "np": np, "io": io})) for m in (np, xp)
    )
    assert actual == expected


@pytest.mark.clfuse_only
def test_reading_and_writing_files_is_no_fallback(
        xp: ModuleType, setting: Callable[..., None], tmp_path: Path) -> None:
    setting(fallback="raise")
    x = xp.arange(6.0).reshape(2, 3) / 4
    xp.save(tmp_path / "x.npy", x)
    xp.savez(tmp_path / "x.npz", x=x, y=x[0])
    xp.savez_compressed(tmp_path / "z.npz", x)
    xp.savetxt(tmp_path / "x.txt", x)
    read = [
        xp.load(tmp_path / "x.npy"), xp.load(tmp_path / "x.npz")["x"],
        xp.load(tmp_path / "z.npz")["arr_0"], xp.loadtxt(tmp_path / "x.txt"),
        xp.genfromtxt(tmp_path / "x.txt"),
    ]  # fmt: skip
    for array in read:
        assert type(array) is xp.ndarray
        assert_bitwise(array, host(x))
    assert_bitwise(xp.load(tmp_path / "x.npz")["y"], host(x)[0])


@pytest.mark.clfuse_only
def test_the_count_of_functions_names_what_runs_on_the_host(xp: ModuleType) -> None:
    from clfuse.namespace import coverage

    counted = coverage()
    on_host = {
        name for name, kind in counted.items()
        if kind in ("host", "library") and name[0] != "_"  # of NumPy's own, before 2.2
    }
    assert on_host - {"in1d", "trapz"} == {"asmatrix", "bmat", "nested_iters"}  # removed in 2.4
    assert counted["load"] == counted["savetxt"] == "files"
