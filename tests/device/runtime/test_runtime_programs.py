"""Programs and launches: builds, caches on disk, arguments, threads."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from clfuse import config
from clfuse.counters import counters
from clfuse.errors import AllocationError, KernelBuildError
from clfuse.runtime.drivers import compiler
from clfuse.runtime.launches import launch, program
from clfuse.runtime.memory import buffers
from tests.support.queued import AXPY, AXPY_ARGUMENTS

# --- programs ------------------------------------------------------------------------------------


def test_a_source_is_built_once_per_device_and_options(device, axpy):
    before = counters["programs_built"]
    assert program.build(device, AXPY, "axpy", AXPY_ARGUMENTS) is axpy
    assert counters["programs_built"] == before
    with config.override(fp="fast"):
        assert program.build(device, AXPY, "axpy", AXPY_ARGUMENTS) is axpy
        fast = program.build(device, AXPY, "axpy", AXPY_ARGUMENTS, relaxed=True)
        traits = device.traits
        options = program.build_options(device, relaxed=True)
        if traits.schedule == "gpu":
            options = options.removesuffix(traits.group_options).rstrip()
        # Of a simulated device: the version of the language.
        options = options.removesuffix(traits.build_options)
        assert options.split() == ["-w", "-cl-fast-relaxed-math"]
    assert fast is not axpy
    assert program.build(device, AXPY, "axpy", AXPY_ARGUMENTS) is axpy


def test_compilers_say_nothing_of_generated_code_on_stderr(device, capfd):
    source = "__kernel void self(__global int *x, int n) { x[0] = n == n; }"
    program.build(device, source, "self", (None, np.dtype("i4")))
    assert capfd.readouterr().err == ""


def test_a_kernel_that_does_not_build_names_source_and_log(device):
    source = "__kernel void broken(__global float *x) { x[0] = undeclared_name; }"
    kept = buffers.upload(device, np.arange(10))
    with pytest.raises(KernelBuildError) as caught:
        program.build(device, source, "broken", (None,))
    error = caught.value
    assert isinstance(error, RuntimeError)
    try:
        with open(error.path, encoding="utf-8") as file:
            report = file.read()
    finally:
        os.unlink(error.path)
    assert error.path in str(error)
    assert device.name in str(error)
    assert "undeclared_name" in str(error)
    assert source in report
    assert "undeclared_name" in report.replace(source, "")
    np.testing.assert_array_equal(buffers.download(kept, np.int64, (10,)), np.arange(10))


def test_a_failed_build_is_tried_again(device):
    source = "__kernel void broken(__global float *x) { x[0] = undeclared_name; }"
    for _ in range(2):
        with pytest.raises(KernelBuildError) as caught:
            program.build(device, source, "broken", (None,))
        os.unlink(caught.value.path)


def test_a_kernel_name_that_is_not_in_the_source_is_an_error(device):
    with pytest.raises(KernelBuildError, match="axpi") as caught:
        program.build(device, AXPY, "axpi", AXPY_ARGUMENTS)
    os.unlink(caught.value.path)


def test_a_build_error_survives_pickling():
    import pickle

    error = pickle.loads(pickle.dumps(KernelBuildError("k: no", "/tmp/k.cl", "log")))
    assert (str(error), error.path, error.log) == ("k: no", "/tmp/k.cl", "log")


def test_programs_in_memory_are_bounded(device, monkeypatch):
    monkeypatch.setattr(program, "_programs", {})
    monkeypatch.setattr(program, "PROGRAMS_LIMIT", 2)
    for factor in (3, 4, 5):
        source = f"__kernel void k(__global int *x) {{ x[get_global_id(0)] *= {factor}; }}"
        program.build(device, source, "k", (None,))
    assert len(program._programs) == 2


@pytest.fixture
def own_cache(monkeypatch, tmp_path):
    """A cache on disk of its own, used whatever the driver has."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(compiler, "keeps_builds", lambda handle: False)
    return tmp_path / "clfuse" / "programs"


def run_compiled(device, source=AXPY):
    """Compile and run the kernel: its first result."""
    import pyopencl as cl

    kernel = cl.Kernel(compiler.compile_program(device.context, device.handle, source, ""), "axpy")
    kernel.set_scalar_arg_dtypes(AXPY_ARGUMENTS)
    x = buffers.upload(device, np.ones(10, np.float32))
    y = buffers.upload(device, np.zeros(10, np.float32))
    kernel(device.queue, (1,), (1,), x.mem, y.mem, 10, 2.0, 1)
    return buffers.download(y, np.float32, (10,))[0]


def test_a_binary_is_kept_on_disk_and_used_again(device, own_cache, monkeypatch):
    assert run_compiled(device) == 3
    (kept,) = own_cache.iterdir()
    written = kept.stat().st_ino
    assert run_compiled(device) == 3
    assert [file.stat().st_ino for file in own_cache.iterdir()] == [written]


def test_a_damaged_binary_is_built_again(device, own_cache):
    assert run_compiled(device) == 3
    (kept,) = own_cache.iterdir()
    kept.write_bytes(b"")
    assert run_compiled(device) == 3
    assert kept.stat().st_size > 0


def test_binaries_unused_for_long_go_when_there_are_too_many(
    device, own_cache, monkeypatch
):
    monkeypatch.setattr(compiler, "BINARIES_LIMIT", 3)
    monkeypatch.setattr(compiler, "COUNT_EVERY", 1)
    for factor in range(6):
        assert run_compiled(device, AXPY.replace("+ offset", f"* {factor} + offset")) >= 1
    assert len(list(own_cache.iterdir())) <= 3


# --- launches ------------------------------------------------------------------------------------


def test_a_launch_takes_buffers_and_python_or_numpy_scalars(device, axpy):
    x = buffers.upload(device, np.arange(1000, dtype=np.float32))
    y = buffers.upload(device, np.zeros(1000, np.float32))
    before = counters["kernels_launched"]
    launch.enqueue(axpy, (8,), None, (x.mem, y.mem, 1000, 2.0, 3))
    launch.enqueue(axpy, (8,), (2,), (x.mem, y.mem, np.int32(10), np.float32(-2), np.int64(-3)))
    assert counters["kernels_launched"] == before + 2
    expected = 2 * np.arange(1000) + 3
    expected[:10] = 0
    np.testing.assert_array_equal(buffers.download(y, np.float32, (1000,)), expected)


def test_a_launch_does_not_wait(device, axpy, gate):
    x = buffers.upload(device, np.ones(10, np.float32))
    memory = buffers.allocate(device, 40).mem
    event = launch.enqueue(axpy, (1,), (1,), (x.mem, memory, 10, 2.0, 3))
    device.queue.flush()
    assert not gate.is_open
    assert event.command_execution_status > 0
    gate.open()
    launch.finish(device)
    assert event.command_execution_status == 0


@pytest.mark.usefixtures("uncollected")
def test_launches_of_many_threads_keep_their_arguments_apart(device, axpy):
    # Few threads, many launches: a kernel object holds one set of arguments.
    def work(number):
        rng = np.random.default_rng(number)
        for _ in range(30):
            n = int(rng.integers(1, 2000))
            array = rng.random(n, np.float32)
            x, y = buffers.upload(device, array), buffers.upload(device, np.zeros(n, np.float32))
            launch.enqueue(axpy, (16,), (1,), (x.mem, y.mem, n, float(number), number))
            expected = np.float32(number) * array + np.float32(number)
            np.testing.assert_allclose(buffers.download(y, np.float32, (n,)), expected, rtol=1e-6)

    gc.collect()
    now = counters["device_bytes_now"]
    with ThreadPoolExecutor(6) as executor:
        list(executor.map(work, range(6)))
    gc.collect()
    assert counters["device_bytes_now"] == now


def test_threads_that_build_the_same_source_build_it_once(device):
    source = AXPY.replace("+ offset", "- offset")
    before = counters["programs_built"]
    barrier = threading.Barrier(4)

    def build(_):
        barrier.wait()
        return program.build(device, source, "axpy", AXPY_ARGUMENTS)

    with ThreadPoolExecutor(4) as executor:
        built = set(executor.map(build, range(4)))
    assert len(built) == 1
    assert counters["programs_built"] - before <= 1


def test_an_observer_sees_every_launch_with_its_times(device, axpy):
    x = buffers.upload(device, np.ones(1000, np.float32))
    args = (x.mem, buffers.upload(device, np.ones(1000, np.float32)).mem, 1000, 2.0, 3)
    seen = []
    with launch.observe_launches(device, lambda launched, event: seen.append((launched, event))):
        launch.enqueue(axpy, (4,), (1,), args)
        launch.enqueue(axpy, (4,), (1,), args)
        launch.finish(device)
    launch.enqueue(axpy, (4,), (1,), args)
    assert [launched for launched, _ in seen] == [axpy, axpy]
    for _, event in seen:
        assert 0 < event.profile.start <= event.profile.end


def test_a_driver_out_of_memory_is_an_allocation_error(device, axpy, monkeypatch):
    from clfuse.runtime.drivers import opencl as cl

    def fails(*args):
        raise cl.MemoryError("clEnqueueNDRangeKernel failed: MEM_OBJECT_ALLOCATION_FAILURE")

    monkeypatch.setattr(cl, "enqueue_nd_range_kernel", fails)
    with pytest.raises(AllocationError, match="axpy"):
        launch.enqueue(replace(axpy, arguments=()), (1,), (1,), ())


SLOW = """
__kernel void slow(__global float *x, const int n)
{
    float v = x[0];
    for (int i = 0; i < n; i++)
        v = v * 0.999f + 1.0f;
    x[0] = v;
}
"""
SLOW_STEPS = 30_000_000


def test_a_process_may_end_while_kernels_are_running():
    finished = subprocess.run(
        [
            sys.executable,
            "-c",
            "import numpy as np\n"
            "from clfuse.runtime.devices import selection as devices\n"
            "from clfuse.runtime.launches import launch, program\n"
            "from clfuse.runtime.memory import buffers\n"
            "d = devices.get_device()\n"
            f"k = program.build(d, '''{SLOW}''', 'slow', (None, np.dtype(np.int32)))\n"
            "memory = buffers.upload(d, np.zeros(1 << 20, np.float32))\n"
            f"for _ in range(4): launch.enqueue(k, (1,), (1,), (memory.mem, {SLOW_STEPS}))\n"
            "view = buffers.host_view(buffers.upload(d, np.ones(10)), np.float64, (10,))\n"
            f"launch.enqueue(k, (1,), (1,), (memory.mem, {SLOW_STEPS}))\n",
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert finished.returncode == 0, finished.stderr
    assert finished.stderr == ""
