"""A CPU device that appears as another one: memory apart from the host's, and what kernels do
outside it; limits of builds and launches. Whatever is planted here has to be found."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import clfuse as cf
from clfuse._core import loading
from clfuse.config import override
from clfuse.engine.evaluate import forget_plans
from clfuse.runtime.devices import selection
from clfuse.runtime.devices.device import Device
from clfuse.runtime.drivers import compiler
from clfuse.runtime.launches import launch, program
from clfuse.runtime.memory import buffers
from clfuse.runtime.memory.blocks import pool_of
from clfuse.runtime.simulated.guard_memory import PATTERN, arena, guarded
from tests.support.queued import Gate

pytestmark = pytest.mark.clfuse_only

OUTSIDE = """
__kernel void reach(__global float *x, __global float *y, const long at, const int is_write)
{
    if (get_global_id(0)) return;
    if (is_write) x[at] = 3;
    else y[0] = x[at];
}
"""
ARGUMENTS = (None, None, np.dtype(np.int64), np.dtype(np.int32))

handles_faults = pytest.mark.skipif(
    loading.load() is None, reason="without the compiled part such an access ends the process"
)


def require_counted_locals(device: Device) -> None:
    """Skip where the runtime does not say what local memory a kernel has by itself: PoCL 6."""
    import pyopencl as cl

    body = "local float y[999]; y[get_local_id(0)] = x[0]; barrier(1); x[1] = y[0];"
    source = f"kernel void own(global float *x) {{ {body} }}"
    built = compiler.compile_program(device.context, device.handle, source, "")
    kernel = cl.Kernel(built, "own")
    query = cl.kernel_work_group_info.LOCAL_MEM_SIZE
    if kernel.get_work_group_info(query, device.handle) < 999 * 4:
        pytest.skip("the runtime does not count a kernel's own local memory")


def simulated(key: str) -> Device:
    """A device of its own on the hardware of the current one."""
    import pyopencl as cl

    current = selection.get_device()
    if not current.handle.type & cl.device_type.CPU:
        pytest.skip("only a CPU device appears as another one")
    with override(simulate=key):
        return Device(current.handle, current.handle.platform, current.index)


@pytest.fixture(scope="module")
def h100() -> Iterator[Device]:
    made = simulated("h100")
    yield made
    made.finish()
    forget_plans()


def block(device: Device, count: int) -> buffers.Buffer:
    return buffers.upload(device, np.arange(count, dtype=np.float32))


def reach(device: Device, x: buffers.Buffer, y: buffers.Buffer, at: int, is_write: bool) -> None:
    built = program.build(device, OUTSIDE, "reach", ARGUMENTS)
    launch.enqueue(built, (64,), (64,), [x.mem, y.mem, np.int64(at), np.int32(is_write)])


# --- what it says of itself -----------------------------------------------------------------------


def test_the_device_says_that_it_is_simulated_and_on_what(h100: Device) -> None:
    native = h100.handle.name.strip()
    assert h100.name == f"NVIDIA H100 80GB HBM3, simulated on {native}"
    assert h100.kind == "gpu"
    assert not h100.shares_memory
    assert h100.traits.driver.startswith(h100.handle.driver_version.strip())
    assert h100.usable


def test_commands_list_it_and_refuse_an_unknown_name() -> None:
    def run(key: str, command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "clfuse", command], text=True, capture_output=True, timeout=300,
            env={**os.environ, "CLFUSE_SIMULATE": key},
        )  # fmt: skip

    simulated("mobile")  # skips where there is no CPU device
    listed = run("mobile", "devices")
    assert listed.returncode == 0, listed.stderr
    assert "gpu  mobile GPU, simulated on" in listed.stdout
    doctor = run("mobile", "doctor").stdout
    assert "simulated: 16 KiB of local memory, 1,024 bytes of arguments" in doctor
    wrong = run("mobil", "devices")
    assert wrong.returncode != 0
    assert "CLFUSE_SIMULATE: 'mobil'; it takes" in wrong.stderr + wrong.stdout
    assert "h100" in wrong.stderr + wrong.stdout
    assert "Traceback" not in wrong.stderr


# --- memory of its own ----------------------------------------------------------------------------


def test_programs_give_what_they_give_elsewhere(h100: Device) -> None:
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(300, 500)), rng.normal(size=(500, 40))
    with cf.device(h100), override(host_us=0):
        a, b = cf.asarray(x), cf.asarray(y)
        np.testing.assert_allclose((a @ b).get(), x @ y, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(cf.sum(a * 2, axis=0).get(), (x * 2).sum(0), rtol=1e-9)
        np.testing.assert_array_equal(cf.sort(a, axis=1).get(), np.sort(x, axis=1))
        np.testing.assert_array_equal(a[a > 1].get(), x[x > 1])
        a[10:20, ::3] = 7.0
        x[10:20, ::3] = 7.0
        np.testing.assert_array_equal(a.get(), x)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int32", "uint64"])
def test_unwritten_memory_is_nan_and_wild_also_when_reused(
    h100: Device, dtype: str
) -> None:
    size = np.dtype(dtype).itemsize
    for _ in range(3):  # a fresh block, and the same one twice
        buffer = buffers.allocate(h100, 500 * size)
        found = buffers.download(buffer, dtype, (500,))
        if found.dtype.kind == "f":
            assert np.isnan(found).all()
        else:
            expected = np.full(2000, PATTERN, np.uint16).view(dtype)[:500]
            np.testing.assert_array_equal(found, expected)
            assert size == 1 or int(found[0]) >= 2 ** (8 * size - 2)
        buffers.write(buffer, np.zeros(500, dtype))
        assert not buffers.download(buffer, dtype, (500,)).any()
        del buffer


def test_what_is_uploaded_is_copied_and_nothing_is_shared(h100: Device) -> None:
    from clfuse.runtime.memory.sharing import share

    host = np.arange(1000.0)
    buffer = buffers.upload(h100, host)
    host[:] = -1
    np.testing.assert_array_equal(buffers.download(buffer, "f8", (1000,)), np.arange(1000.0))
    assert share(h100, host) is None
    assert buffers.host_memory(buffer) is None
    assert buffers.lend_memory(buffer, np.dtype("f8"), (1000,)) is None
    view = buffers.host_view(buffer, "f8", (1000,))
    assert not buffer.exported
    buffers.write(buffer, np.zeros(1000))
    np.testing.assert_array_equal(view, np.arange(1000.0))
    with pytest.raises(cf.DeviceError, match=r"map.*memory of its own"):
        buffers._map(buffer, np.dtype("u1"), (8,), write=False)
    with buffers.map_to_host(buffer, "f8", (1000,), write=True) as copy:
        copy[:] = 5
    np.testing.assert_array_equal(buffers.download(buffer, "f8", (1000,)), np.full(1000, 5.0))


def test_a_device_that_shares_memory_is_simulated_with_maps() -> None:
    apple = simulated("apple")
    assert apple.shares_memory
    x = np.arange(1000, dtype=np.float32)
    buffer = buffers.upload(apple, x)
    assert buffers.host_memory(buffer) is None  # a GPU's driver may have a copy
    view = buffers.host_view(buffer, "f4", (1000,))
    assert buffer.exported
    np.testing.assert_array_equal(view, x)
    del view
    assert not buffer.exported
    with cf.device(apple), override(host_us=0):
        np.testing.assert_array_equal((cf.asarray(x) * 2).get(), x * 2)
    apple.finish()


def test_memory_beyond_the_device_is_refused_without_loss() -> None:
    mobile = simulated("mobile")
    x = block(mobile, 100)
    most = mobile.traits.max_alloc_nbytes
    assert most <= 256 << 20
    with pytest.raises(cf.AllocationError, match=f"{most + 1:,} bytes"):
        buffers.allocate(mobile, most + 1)
    with cf.device(mobile), override(host_us=0), pytest.raises(cf.AllocationError):
        cf.evaluate(cf.sort(cf.ones(most // 4 + 1, "float32")))
    np.testing.assert_array_equal(buffers.download(x, "f4", (100,)), np.arange(100, dtype="f4"))


# --- outside of arrays ----------------------------------------------------------------------------


@handles_faults
@pytest.mark.parametrize("is_write", [False, True])
@pytest.mark.parametrize(
    ("at", "where"),
    [
        (1024, "at byte 4,096 of argument 0, which has 4,096 bytes"),
        (1025, "at byte 4,100 of argument 0, which has 4,096 bytes"),
        (9000, "at byte 36,000 of argument 0, which has 4,096 bytes"),
        (-1, "4 bytes before the start of argument 0"),
        (-1024, "4,096 bytes before the start of argument 0"),
        (1 << 31, "away from every array"),
        (-(1 << 31), "away from every array"),
    ],
)
def test_an_access_outside_names_kernel_argument_and_place(
    h100: Device, at: int, where: str, is_write: bool
) -> None:
    x, y = block(h100, 1024), block(h100, 1024)
    what = "writes" if is_write else "reads"
    for _ in range(2):  # the page is guarded again
        with pytest.raises(cf.DeviceError) as caught:
            reach(h100, x, y, at, is_write)
        assert f"reach {what} " in str(caught.value)
        assert where in str(caught.value)
    # The device goes on, and the array has its contents.
    reach(h100, x, y, 1023, False)
    assert buffers.download(y, "f4", (1,))[0] == 1023
    np.testing.assert_array_equal(buffers.download(x, "f4", (1024,)), np.arange(1024, dtype="f4"))


@handles_faults
@pytest.mark.parametrize(
    ("at", "where"),
    [
        (1000, "at byte 4,000 of argument 0, which has 4,000 bytes"),
        (1023, "at byte 4,092 of argument 0, which has 4,000 bytes"),
        (-1, "4 bytes before the start of argument 0"),
    ],
)
@pytest.mark.parametrize("count", [1000, 500])
def test_a_write_beside_an_array_is_found_and_a_read_is_nan(
    h100: Device, count: int, at: int, where: str
) -> None:
    at -= 1000 - count if at > 0 else 0
    nbytes, place = 4 * count, 4 * at
    x, y = block(h100, count), block(h100, 16)
    memory = guarded(x.mem)
    assert memory is not None
    inside = memory.lead >= -place if at < 0 else place < memory.size
    expected = (
        where.replace("4,000 bytes", f"{nbytes:,} bytes")
        .replace("byte 4,000", f"byte {place:,}").replace("byte 4,092", f"byte {place:,}")
    )  # fmt: skip
    with pytest.raises(cf.DeviceError) as caught:
        reach(h100, x, y, at, True)
    assert expected in str(caught.value)
    if inside:
        reach(h100, x, y, at, False)
        assert np.isnan(buffers.download(y, "f4", (1,))[0])
    reach(h100, x, y, 0, True)  # the array itself may be written to


@handles_faults
def test_many_bad_pages_of_many_work_items_are_one_error(h100: Device) -> None:
    source = """
    __kernel void spread(__global float *x, const int step)
    {
        x[get_global_id(0) * step] += 1;
    }
    """
    built = program.build(h100, source, "spread", (None, np.dtype(np.int32)))
    x = block(h100, 1024)
    with pytest.raises(cf.DeviceError, match=r"spread (reads|writes) at byte [\d,]+ of argument 0"):
        launch.enqueue(built, (4096,), (64,), [x.mem, np.int32(16)])
    launch.enqueue(built, (1024,), (64,), [x.mem, np.int32(1)])


@handles_faults
def test_memory_that_went_back_is_nobodys(h100: Device) -> None:
    pool = pool_of(h100)
    gone = block(h100, 123_456)
    memory = guarded(gone.mem)
    assert memory is not None
    address = memory.address
    del gone, memory
    pool.trim()
    x, y = block(h100, 16), block(h100, 16)
    kept = guarded(x.mem)
    assert kept is not None
    with pytest.raises(cf.DeviceError, match="reach reads"):
        reach(h100, x, y, (address - kept.address) // 4, False)


@handles_faults
def test_an_array_program_out_of_bounds_names_the_kernel(
    h100: Device,
) -> None:
    past = cf.RawKernel("kernel void past(global float *x) { x[get_global_size(0) * 64] = 1; }",
                        "past")  # fmt: skip
    with cf.device(h100), override(host_us=0):
        x, z = cf.zeros(1000, "float32"), cf.ones(1000, "float32") * 2
        cf.evaluate(x, z)
        past((1000,), (1,), (x,))
        with pytest.raises(cf.DeviceError, match="past writes at byte 256,000 of argument 0"):
            cf.evaluate(x)
        np.testing.assert_array_equal(z.get(), np.full(1000, 2, "f4"))
        np.testing.assert_array_equal((z + 1).get(), np.full(1000, 3, "f4"))


@handles_faults
def test_a_held_launch_reports_its_error_at_the_next_wait(
    h100: Device,
) -> None:
    x, y = block(h100, 1024), block(h100, 1024)
    program.build(h100, OUTSIDE, "reach", ARGUMENTS)
    gate = Gate(h100)
    try:
        reach(h100, x, y, 1024, True)
        assert not gate.is_open  # nobody waited until it opened by itself
    finally:
        gate.open()
    with pytest.raises(cf.DeviceError, match="reach writes at byte 4,096"):
        h100.finish()
    h100.finish()


@handles_faults
def test_a_launch_interrupted_behind_the_driver_is_watched(
    h100: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y = block(h100, 1024), block(h100, 1024)
    put = launch._put

    def interrupted(*arguments: Any) -> Any:
        put(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as changed:
        changed.setattr(launch, "_put", interrupted)
        gate = Gate(h100)
        try:
            with pytest.raises(KeyboardInterrupt):  # it is held back: nothing is known yet
                reach(h100, x, y, 1024, True)
        finally:
            gate.open()
        with pytest.raises(cf.DeviceError, match="reach writes at byte 4,096"):
            h100.finish()
        with pytest.raises(KeyboardInterrupt):
            reach(h100, x, y, 1023, True)
        with pytest.raises(cf.DeviceError, match="reach writes at byte 4,096"):
            reach(h100, x, y, 1024, True)
    h100.finish()
    assert buffers.download(x, "f4", (1024,))[1023] == 3


def test_memory_that_changes_owner_in_a_held_launch_is_no_fault(
    h100: Device,
) -> None:
    x, y = block(h100, 1024), block(h100, 1024)
    address = x.mem.int_ptr
    program.build(h100, OUTSIDE, "reach", ARGUMENTS)
    gate = Gate(h100)
    try:
        reach(h100, x, y, 1023, True)
        del x
        next_owner = buffers.allocate(h100, 4 * 1024 - 64)  # of the same block, but uses less of it
        assert next_owner.mem.int_ptr == address
        since = time.monotonic()
        for _ in range(20):
            reach(h100, y, y, 1023, True)
        assert time.monotonic() - since < 5  # what is held back is waited for once
    finally:
        gate.open()
    h100.finish()
    assert np.isnan(buffers.download(next_owner, "f4", (1008,))).all()
    assert buffers.download(y, "f4", (1024,))[1023] == 3


@handles_faults
def test_faults_of_others_go_to_who_handled_them_before() -> None:
    """What else faults while a kernel runs ends the process, as ever; and the kernel is named."""
    simulated("h100")
    text = """
import ctypes
import clfuse as cf
from clfuse.runtime.simulated import guard_memory
assert cf.get_device().simulation is not None
cf.evaluate(cf.ones(1000, "float32") * 2)
guard_memory.arena().watch("some kernel")
print("watched", flush=True)
ctypes.string_at(16)
"""
    for handler in ("0", "1"):
        ran = subprocess.run(
            [sys.executable, *(["-X", "faulthandler"] if handler == "1" else []), "-c", text],
            text=True, capture_output=True, timeout=300,
            env={**os.environ, "CLFUSE_SIMULATE": "h100", "CLFUSE_HOST_US": "0"},
        )  # fmt: skip
        assert ran.stdout == "watched\n", ran.stderr
        assert ran.returncode < 0
        assert "kernel some kernel or something beside it touches memory that nobody has, at" in (
            ran.stderr
        )
        assert "0x0000000000000010" in ran.stderr
        assert ("Fatal Python error: Segmentation fault" in ran.stderr) == (handler == "1")


def test_without_the_compiled_part_a_bad_access_ends_python() -> None:
    simulated("h100")
    text = """
import clfuse as cf
k = cf.RawKernel("kernel void past(global float *x) { x[1 << 20] = 1; }", "past")
x = cf.zeros(1000, "float32")
k((1,), (1,), (x,))
print("launched", flush=True)
cf.evaluate(x)
print("survived")
"""
    ran = subprocess.run(
        [sys.executable, "-c", text], text=True, capture_output=True, timeout=300,
        env={**os.environ, "CLFUSE_SIMULATE": "h100", "CLFUSE_HOST_US": "0",
             "CLFUSE_COMPILED": "off"},
    )  # fmt: skip
    assert ran.stdout == "launched\n"
    assert ran.returncode < 0
    assert "Segmentation fault" in ran.stderr
    assert "launch.py" in ran.stderr


def test_blocks_lie_where_the_guard_says(h100: Device) -> None:
    memory = arena()
    if memory is None:
        pytest.skip("no such memory on this system")
    made = memory.take(1000)
    assert made.size == 1024
    assert made.address % 128 == 0
    assert memory.start < made.address < made.address + made.size < memory.end
    assert memory.nearest(made.address - 1) == (made.address, made.address + 1024)
    assert memory.nearest(made.address + 1024) == (made.address, made.address + 1024)
    inside = np.asarray(made)
    inside[:] = 1
    made.used = 1000
    assert made.overwritten() == 1000
    inside[1000:] = np.full(12, PATTERN, np.uint16).view(np.uint8)
    assert made.overwritten() is None
    address = made.address
    del inside, made
    assert memory.nearest(address) != (address, address + 1024)


# --- limits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "body", "message"),
    [
        ("mobile", "local float z[4097]; z[get_local_id(0)] = x[0]; barrier(1); x[1] = z[0];",
         "16,38"),
        ("h100", "local float z[12289]; z[get_local_id(0)] = x[0]; barrier(1); x[1] = z[0];",
         "49,15"),
        ("arc", "double z = x[0]; x[1] = z;", "cl_khr_fp64"),
        ("apple", "x[1] = convert_double(x[0]) * 2;", "cl_khr_fp64"),
        ("h100", "half2 z = (half2)(1, 2); x[1] = 1;", "cl_khr_fp16"),
        ("h100", "global float *private y; x[1] = work_group_reduce_add(x[0]);", "error"),
    ],
)  # fmt: skip
def test_kernels_the_device_does_not_take_are_refused_before(
    key: str, body: str, message: str
) -> None:
    device = simulated(key)
    if "local" in body:
        require_counted_locals(device)
    with cf.device(device), override(host_us=0):
        x, y = cf.ones(64, "float32"), cf.ones(64, "float32") * 2
        cf.evaluate(x, y)
        kernel = cf.RawKernel(f"kernel void over(global float *x) {{ {body} }}", "over")
        kernel((1,), (1,), (x,))
        y += 1
        with pytest.raises(cf.KernelBuildError) as caught:
            cf.evaluate(x, y)
        assert message in str(caught.value)
        assert "simulated" in str(caught.value)
        np.testing.assert_array_equal(y.get(), np.full(64, 3, "f4"))


@pytest.mark.parametrize("key", ["h100", "arc"])
def test_what_the_source_asks_for_itself_is_taken(key: str) -> None:
    """``#ifdef cl_khr_fp64`` is what the device has; halves in memory are in the language."""
    device = simulated(key)
    source = """
    #ifdef cl_khr_fp64
    #pragma OPENCL EXTENSION cl_khr_fp64 : enable
    typedef double number;
    #else
    typedef float number;
    #endif
    kernel void sizes(global int *x, global half *y)
    {
        x[0] = sizeof(number);
        vstore_half(vload_half(0, y) + 1, 1, y);
    }
    """
    with cf.device(device), override(host_us=0):
        x, y = cf.zeros(1, "int32"), cf.ones(2, "float16")
        cf.RawKernel(source, "sizes")((1,), (1,), (x, y))
        assert x.get()[0] == (8 if key == "h100" else 4)
        assert y.get()[1] == 2


@pytest.mark.parametrize(
    ("key", "items", "message"), [("h100", 2048, "1024"), ("mi210", 512, "256"),
                                  ("mobile", 256, "128")]
)  # fmt: skip
def test_groups_that_are_too_large_are_refused(key: str, items: int, message: str) -> None:
    device = simulated(key)
    add = cf.RawKernel("kernel void add(global float *x) { x[get_global_id(0)] += 1; }", "add")
    with cf.device(device), override(host_us=0):
        x = cf.zeros(items, "float32")
        cf.evaluate(x)
        y = x * 1
        add((1,), (items,), (y,))
        with pytest.raises(cf.KernelBuildError, match=f"{message} work-items at most"):
            cf.evaluate(y)
        add((items // 64,), (64,), (x,))
        np.testing.assert_array_equal(x.get(), np.ones(items, "f4"))


def test_local_memory_passed_counts_with_the_kernels_own() -> None:
    mobile = simulated("mobile")
    require_counted_locals(mobile)
    source = """
    kernel void both(global float *x, local float *y)
    {
        local float z[2048];
        z[get_local_id(0)] = y[get_local_id(0)] = x[get_global_id(0)];
        barrier(CLK_LOCAL_MEM_FENCE);
        x[get_global_id(0)] = z[0] + y[0];
    }
    """
    built = program.build(mobile, source, "both", (None, None))
    x = block(mobile, 64)
    launch.check_sizes(built, (64,), (64,), 8192)
    launch.enqueue(built, (64,), (64,), [x.mem, launch.local_memory(8192)])
    with pytest.raises(cf.KernelBuildError, match="local memory"):
        launch.check_sizes(built, (64,), (64,), 8196)
    with pytest.raises(cf.KernelBuildError, match="16,388 bytes of local memory"):
        launch.enqueue(built, (64,), (64,), [x.mem, launch.local_memory(8196)])


def test_arguments_that_are_too_many_are_refused() -> None:
    mobile = simulated("mobile")
    for count, fits in ((128, True), (129, False)):
        names = ", ".join([f"const long a{number}" for number in range(count - 1)])
        source = f"kernel void many(global long *x, {names}) {{ x[0] = a0; }}"
        arguments = (None, *[np.dtype(np.int64)] * (count - 1))
        if fits:
            program.build(mobile, source, "many", arguments)
        else:
            with pytest.raises(cf.KernelBuildError, match="1,032 bytes"):
                program.build(mobile, source, "many", arguments)


def test_double_precision_is_refused_or_downcast() -> None:
    arc = simulated("arc")
    with cf.device(arc), override(host_us=0):
        x = cf.arange(10, dtype="float32")
        with pytest.raises(cf.DeviceDtypeError, match="no double precision"):
            cf.evaluate(cf.asarray(np.arange(10.0)) + 1)
        np.testing.assert_array_equal((x + 1).get(), np.arange(1, 11, dtype="f4"))
        with override(fp64="downcast"):
            assert (cf.asarray(np.arange(10.0)) + 1).dtype == np.float32


def test_single_precision_that_numpy_computes_in_double_stays() -> None:
    with cf.device(simulated("arc")), override(host_us=0):
        for name, ends in (("linspace", (-1, 2.5)), ("logspace", (-1, 2)), ("geomspace", (1, 9))):
            made = getattr(cf, name)(*ends, 50, dtype="f4")
            np.testing.assert_array_equal(made.get(), getattr(np, name)(*ends, 50, dtype="f4"))
            assert (made * 2).get().dtype == np.float32
        with pytest.raises(cf.DeviceDtypeError, match="no double precision"):
            cf.evaluate(cf.linspace(0, 1, 50))


def test_comparing_in_double_needs_it_and_float_powers_do_not() -> None:
    with cf.device(simulated("arc")), override(host_us=0):
        x, whole = cf.arange(10, dtype="float32"), cf.arange(10)
        for call in (lambda: whole < x, lambda: cf.signbit(whole), lambda: whole == x[3]):
            with pytest.raises(cf.DeviceDtypeError, match="no double precision"):
                cf.evaluate(call())
        expected = np.arange(10, dtype="f4") ** np.float32(2.5)
        np.testing.assert_allclose((x ** 2.5).get(), expected, rtol=1e-6)
        np.testing.assert_array_equal((x ** x[::-1]).get()[[0, 1, 8, 9]], [0, 1, 8, 1])
