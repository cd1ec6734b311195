"""Arrays are buffers, as NumPy's are: what others read of them, and write to them."""

from __future__ import annotations

import array
import ctypes
import hashlib
import io
import os
import pickle
import socket
import struct
import sys
import zlib

import numpy as np
import pytest

import clfuse as cf
from clfuse._core import loading

pytestmark = pytest.mark.skipif(
    loading.load() is None and sys.version_info < (3, 12),
    reason="a class of Python's is no buffer before Python 3.12",
)

def outcome_of(call):
    """What a call returns, or the exception that it raises."""
    try:
        return call()
    except Exception as error:
        return error


DTYPES = "?bBhHiIlLefdFD"  # q is l on devices, where both have 64 bits
LAYOUTS = {
    "whole": lambda m, dtype: m.arange(24).astype(dtype).reshape(2, 3, 4),
    "transposed": lambda m, dtype: m.arange(24).astype(dtype).reshape(2, 3, 4).T,
    "every other": lambda m, dtype: m.arange(24).astype(dtype)[::2],
    "backwards": lambda m, dtype: m.arange(24).astype(dtype)[::-1],
    "a row": lambda m, dtype: m.arange(24).astype(dtype).reshape(4, 6)[2],
    "a column": lambda m, dtype: m.arange(24).astype(dtype).reshape(4, 6)[:, 2],
    "a box": lambda m, dtype: m.arange(24).astype(dtype).reshape(4, 6)[1:3, 2:5],
    "stretched": lambda m, dtype: m.broadcast_to(m.arange(4).astype(dtype), (3, 4)),
    "fortran": lambda m, dtype: m.asfortranarray(m.arange(24).astype(dtype).reshape(4, 6)),
    "empty": lambda m, dtype: m.zeros((2, 0, 3), dtype),
    "one": lambda m, dtype: m.ones((1, 1), dtype),
    "0-d": lambda m, dtype: m.array(3, dtype),
    "large": lambda m, dtype: m.ones(100_000, dtype),
}


def described(view):
    return (
        view.format, view.shape, view.strides, view.itemsize, view.nbytes, view.ndim, view.readonly,
        view.c_contiguous, view.f_contiguous, view.contiguous, view.tobytes(),
    )  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_data_of_an_array_say_what_numpys_say(dtype, layout):
    expected = LAYOUTS[layout](np, dtype)
    actual = LAYOUTS[layout](cf, dtype)
    assert described(actual.data) == described(expected.data)
    assert memoryview(actual).readonly
    assert memoryview(actual).tobytes() == memoryview(expected).tobytes()


def written(place, x):
    with open(place, "wb") as file:
        file.write(x)
    return place.read_bytes()


READERS = {
    "bytes": bytes,
    "bytearray": bytearray,
    "sha256": lambda x: hashlib.sha256(x).hexdigest(),
    "crc32": zlib.crc32,
    "compress": zlib.compress,
    "BytesIO": lambda x: io.BytesIO(x).getvalue(),
    "join": lambda x: b"-".join([x, x]),
    "bytearray +=": lambda x: bytearray(b"a").__iadd__(x),
    "unpack_from": lambda x: struct.unpack_from("<BB", x),
    "unpack": lambda x: struct.unpack("<24B", x),
    "iter_unpack": lambda x: list(struct.iter_unpack("<BB", x)),
    "frombytes": lambda x: array.array("b", b"").frombytes(x),
    "frombuffer": lambda x: (np if type(x) is np.ndarray else cf).frombuffer(x, "u1").tolist(),
    "PickleBuffer": lambda x: bytes(pickle.PickleBuffer(x).raw()),
    "from_buffer_copy": lambda x: bytes((ctypes.c_ubyte * 8).from_buffer_copy(x)),
    "cast": lambda x: memoryview(x).cast("B").tolist(),
    "int.from_bytes": lambda x: int.from_bytes(x, "little"),
    "translate": lambda x: b"a".translate(x),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", "?Bhd")
def test_reading_bytes_gives_numpys_or_raises_its_error(dtype, layout, reader):
    def run(m):
        return READERS[reader](LAYOUTS[layout](m, dtype))

    if reader == "PickleBuffer" and loading.load() is None:
        pytest.skip("Python 3.12 does not take a buffer that a class of Python's wraps twice")
    expected, actual = outcome_of(lambda: run(np)), outcome_of(lambda: run(cf))
    if isinstance(expected, Exception):
        assert type(actual) is type(expected), (expected, actual)
    else:
        assert not isinstance(actual, Exception), actual
        assert actual == expected


def test_files_pipes_and_sockets_take_arrays(tmp_path):
    for x in (cf.arange(5.0), cf.arange(5.0) * 2 + 1, cf.ones((300, 300))[:200]):
        expected = x.get().tobytes()
        assert written(tmp_path / "x", x) == expected
        if len(expected) < 1000:
            read, write = os.pipe()
            os.write(write, x)
            assert os.read(read, 1000) == expected
            os.close(read)
            os.close(write)
            one, other = socket.socketpair()
            one.sendall(x)
            assert other.recv(1000) == expected
            one.close()
            other.close()


def pack(x):
    struct.pack_into("<d", x, 8, 7.5)


def from_pipe(x):
    one, other = socket.socketpair()
    with one, other:
        one.sendall(struct.pack("<2d", 3, 4))
        other.recv_into(x, 16)


def from_file(x):
    io.BytesIO(struct.pack("<3d", 1, 2, 3)).readinto(x)


WRITERS = {"pack_into": pack, "recv_into": from_pipe, "readinto": from_file}


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("layout", sorted({*LAYOUTS} - {"empty", "one", "0-d"}))
def test_writing_into_a_buffer_writes_the_array_or_raises(layout, writer):
    def run(m):
        x = LAYOUTS[layout](m, "d")
        before = x * 2
        part = x[1:]
        raised = outcome_of(lambda: WRITERS[writer](x))
        return type(raised), x.tolist(), part.tolist(), before.tolist(), (x + 1).tolist()

    expected, actual = run(np), run(cf)
    assert actual == expected


def test_a_read_only_array_lends_no_writable_memory():
    x = cf.arange(4.0)
    x.flags.writeable = False
    assert x.data.readonly
    with pytest.raises(TypeError):
        struct.pack_into("<d", x, 0, 1.0)
    with pytest.raises(TypeError):
        x.data[0] = 1
    y = cf.broadcast_to(cf.arange(3.0), (2, 3))
    assert y.data.readonly


@pytest.mark.parametrize("count", [5, 100_000])
def test_the_data_and_their_array_see_what_is_written_to_either(count):
    def run(m):
        x = m.arange(count) * 2.0
        part = x[1:]
        view = x.data
        view[2] = 100
        seen = [x[2], part[1], (x + 1)[2], x.sum()]
        x[0] = 5
        part *= 2
        seen += [view[0], view[1], view[count - 1], part.max()]
        before = x + 0
        view[3] = -1
        seen += [before[3], x[3]]
        view.release()
        x += 1
        return [float(value) for value in seen], x.tolist()

    assert run(cf) == run(np)


def test_reading_by_memoryview_leaves_the_array_on_the_device():
    with cf.config.override(host_us=0):
        x = cf.arange(100_000) * 2.0
        cf.evaluate(x)
        buffer = x._storage.node.buffer
        with memoryview(x) as view:
            assert view[7] == 14
        with x.data as view:
            assert view[8] == 16
        assert bytes(x)[:8] == bytes(8)
        assert float(x.sum()) == 9999900000.0
        if buffer.device.traits.unified_memory:
            assert x._storage.node.buffer is buffer


@pytest.mark.parametrize("shown", [memoryview, lambda x: x.data])
def test_memoryviews_of_arrays_hold_what_they_show(shown):
    view = shown(cf.arange(1000.0) + 1)
    again = memoryview(view)[2:4]
    del view
    cf.synchronize()
    assert again.tolist() == [3.0, 4.0]


def test_a_memoryview_shows_what_was_there_and_takes_no_writes():
    x = cf.arange(1000.0)
    view = memoryview(x)
    x += 1
    assert view[3] == 3
    with pytest.raises(TypeError):
        view[0] = 1


def test_what_a_snapshot_shows_does_not_change():
    x = cf.arange(1000.0)
    seen = np.asarray(x)
    assert not seen.flags.writeable
    x += 1
    assert seen[0] == 0
    assert x[0] == 1


def test_scalars_are_read_only_buffers():
    for number in (np.float32(2.5), np.int64(3), np.complex128(1 + 2j), np.bool_(True)):
        x = cf.ones(3, number.dtype)
        x[...] = number
        lazy = x.max()
        assert described(memoryview(lazy)) == described(memoryview(number))
        assert hashlib.md5(lazy).digest() == hashlib.md5(number).digest()
        with pytest.raises(TypeError):
            struct.pack_into("<B", lazy, 0, 1)


def test_ctypes_writes_to_the_array():
    def run(m):
        x = m.arange(6.0)
        pointer = x.ctypes.data_as(ctypes.POINTER(ctypes.c_double))
        pointer[2] = 9
        x[1] = 4
        y = x[::2]
        strides, shape = tuple(y.ctypes.strides), tuple(y.ctypes.shape)
        return x.tolist(), pointer[1], strides, shape

    assert run(cf) == run(np)


def test_frombuffer_of_an_array_is_a_view_of_it():
    def run(m, dtype, *args):
        x = m.arange(6, dtype="i4")
        y = m.frombuffer(x, dtype, *args)
        x[2] = -7
        seen = y.tolist()
        y[0] = 1
        return seen, x.tolist(), y.dtype

    dtypes = (("u1",), ("i4", 3), ("i8", 2, 8), ("i2", -1, 4), ("S2", 2), (">i4",), ("i8", 1, 4))
    for case in dtypes:
        assert run(cf, *case) == run(np, *case), case
    for dtype, *args in (("i8", 9), ("u1", -1, 99), ("O",), ("i4", 0)):
        expected = outcome_of(lambda: run(np, dtype, *args))  # noqa: B023
        actual = outcome_of(lambda: run(cf, dtype, *args))  # noqa: B023
        assert type(actual) is type(expected), (dtype, expected, actual)


def test_conversions_keep_the_dispatch_of_numpys_functions():
    host, x = np.arange(3.0), cf.arange(3.0)
    assert type(np.add(host, x)) is cf.ndarray
    assert type(host + x) is cf.ndarray
    assert type(np.sum(x * 2)) is not np.ndarray
    assert type(np.concatenate([x, x])) is cf.ndarray
    assert type(np.asarray(x)) is np.ndarray
    assert np.asarray(x).strides == (8,)
    host[:] = x * 2
    assert host.tolist() == [0, 2, 4]
    assert np.array([x, x]).shape == (2, 3)
    assert np.from_dlpack(x).tolist() == [0, 1, 2]
    masked = np.ma.array(x)
    masked[1] = 50
    assert x[1] == 50
    assert np.array([x.sum(), x.max()]).dtype == np.float64


BUFFERS = {
    "bytearray": lambda: bytearray(range(16)),
    "memoryview": lambda: memoryview(bytearray(range(16))).cast("i"),
    "array": lambda: array.array("d", [1, 2]),
    "ctypes": lambda: (ctypes.c_int32 * 4)(5, 6, 7, 8),
    "bytes": lambda: memoryview(bytes(range(16))),
}


@pytest.mark.parametrize("make", [np.asarray, np.asanyarray, np.ascontiguousarray, np.array])
@pytest.mark.parametrize("name", BUFFERS)
def test_arrays_of_buffers_share_their_memory_as_numpys_do(name, make):
    """And a copy does not."""
    theirs, ours = BUFFERS[name](), BUFFERS[name]()
    expected, actual = make(theirs), getattr(cf, make.__name__)(ours)
    assert actual.flags.writeable == expected.flags.writeable
    if expected.flags.writeable:
        expected[1:] = 3
        actual[1:] = 3
    assert np.asarray(actual).tolist() == expected.tolist()
    assert bytes(ours) == bytes(theirs)
    converted = getattr(cf, make.__name__)(ours, dtype=np.float32)
    converted[...] = 0
    assert bytes(ours) == bytes(theirs)
