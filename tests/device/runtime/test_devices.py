"""Devices: what is listed, what a spec selects, what happens to one that does not work."""

from __future__ import annotations

import contextvars
import os
import subprocess
import sys
import textwrap
import threading
import warnings
from pathlib import Path

import pytest

from clfuse import config
from clfuse.errors import DeviceError, DeviceWarning
from clfuse.runtime.devices import device as device_module
from clfuse.runtime.devices import selection as runtime
from clfuse.runtime.drivers import probing, vendors
from clfuse.target.traits import DeviceTraits


@pytest.fixture
def fresh(monkeypatch):
    """A process that has not looked for devices yet; what it finds is forgotten afterwards."""
    monkeypatch.setattr(runtime, "_listed", None)
    monkeypatch.setattr(runtime, "_chosen", None)
    monkeypatch.setattr(runtime, "_warned", set())
    monkeypatch.setattr(runtime, "_defaults", {})
    monkeypatch.setattr(runtime, "_awaited", {})
    return monkeypatch


@pytest.fixture
def selection(monkeypatch):
    """The test may call set_device."""
    monkeypatch.setattr(runtime, "_chosen", None)


def breaking(monkeypatch, broken, cause="unknown target CPU 'generic'"):
    """Make the probe fail on the devices whose platform's name `broken` accepts."""
    real = probing.probe

    def probe(queue, *headers_read):
        if broken(queue.device.platform.name):
            return cause
        return real(queue, *headers_read)

    monkeypatch.setattr(probing, "probe", probe)


def python(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a fresh interpreter, with this environment and a few changes."""
    variables = {
        k: v for k, v in os.environ.items() if k not in ("CLFUSE_DEVICE", "PYTHONWARNINGS")
    }
    return subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={**variables, **environment},
        timeout=120,
    )


# --- what there is -------------------------------------------------------------------------------


def test_the_current_device_is_one_of_those_listed(fresh):
    with config.override(fp64="error"):
        awaited = runtime.current_device()
        assert (awaited.is_settled, awaited.fp64, awaited.shares_memory) == (False, True, True)
        assert runtime._listed is None
        name = awaited.name
        assert awaited.is_settled
        assert type(awaited) is device_module.Device
        assert [d for d in runtime.listed() if d is awaited] == [awaited]
        assert awaited is runtime.get_device() is runtime.current_device()
        assert name == awaited.handle.name.strip() or awaited.simulation is not None
        assert awaited.fp64 == awaited.traits.fp64
        assert awaited.shares_memory == awaited.traits.unified_memory
        with pytest.raises(AttributeError, match="no attribute 'nothing'"):
            _ = awaited.nothing


def test_the_devices_are_the_same_objects_each_time():
    assert runtime.devices() == runtime.devices()
    assert all(device.usable for device in runtime.devices())
    assert set(runtime.devices()) <= set(runtime.listed())


def test_a_gpu_comes_before_a_cpu_and_simulators_come_last():
    ranks = [runtime.preference.preference(device)[:2] for device in runtime.devices()]
    assert ranks == sorted(ranks)


def test_the_representation_names_index_device_and_platform():
    device = runtime.get_device()
    for part in (device.index, device.name, device.platform_name):
        assert part in repr(device)


def test_the_traits_of_pocl_and_intels_runtime_are_as_known():
    known = {
        "Portable Computing Language": {"correctly_rounded_divide": True},
        "Intel(R) OpenCL": {"correctly_rounded_divide": True, "fp16": True},
    }
    for device in runtime.devices():
        expected = known.get(device.platform_name)
        if expected is None or device.kind != "cpu":
            continue
        traits = device.traits
        assert {name: getattr(traits, name) for name in expected} == expected
        assert traits.fp64
        assert traits.unified_memory
        assert traits.schedule == "cpu"
        assert traits.vector_bytes in (16, 32, 64)
        assert traits.max_alloc_nbytes <= traits.global_nbytes
        assert traits.compute_units >= 1


def test_pocl_3_has_no_half_precision():
    for device in runtime.devices():
        if "PoCL 3." in device.traits.version + device.traits.driver and device.kind == "cpu":
            assert not device.traits.fp16


def test_settings_force_schedule_vectors_and_work_items():
    device = runtime.get_device()
    own = device.traits
    with config.override(schedule="gpu"):
        assert device.traits.schedule == "gpu"
        assert device.traits.work_group == min(256, own.max_work_group)
    with config.override(vector_bytes=16, work_items=3):
        assert (device.traits.vector_bytes, device.traits.work_items) == (16, 3)
    assert device.traits == own


# --- what a spec selects -------------------------------------------------------------------------


def test_a_spec_is_a_kind_a_part_of_a_name_or_an_index():
    for device in runtime.devices():
        platform, _ = device.index.split(":")
        assert runtime.find(device.index) is device
        assert runtime.find(device) is device
        assert runtime.find(platform).index.startswith(f"{platform}:")
        assert runtime.find(device.kind).kind == device.kind
        assert runtime.find(device.platform_name.upper()).platform_name == device.platform_name
        assert runtime.find(f"  {device.name}  ").name == device.name


def test_a_number_after_a_name_counts_what_fits():
    for kind in {device.kind for device in runtime.devices()}:
        fitting = [device for device in runtime.devices() if device.kind == kind]
        for position, device in enumerate(fitting):
            assert runtime.find(f"{kind}:{position}") is device


def test_a_platforms_name_selects_no_device_of_another_platform(fresh):
    # PoCL calls its device after the processor: "pthread-...-Intel(R) Xeon(R) ...".
    pocl_on_intel = [
        device for device in runtime.listed()
        # A simulated one is also found by the platform that it appears as.
        if "intel" not in f"{device.platform_name} {device.untuned_traits.platform}".lower()
    ]
    fresh.setattr(runtime, "_listed", pocl_on_intel)
    with pytest.raises(DeviceError, match="no OpenCL device fits 'intel'"):
        runtime.find("intel")


@pytest.mark.parametrize("spec", ["no-such-device", "99", "0:99", "99:0", "cpu:99", "gpu:x"])
def test_a_spec_that_fits_nothing_lists_what_there_is(spec):
    with pytest.raises(DeviceError) as caught:
        runtime.find(spec)
    assert repr(spec) in str(caught.value)
    for device in runtime.listed():
        assert device.name in str(caught.value)
    assert isinstance(caught.value, RuntimeError)


@pytest.mark.parametrize("spec", ["", "  ", 0, None, b"cpu"])
def test_a_spec_that_is_no_text_says_what_to_give(spec):
    with pytest.raises(DeviceError, match="it takes a text such as 'cpu'"):
        runtime.find(spec)


def test_set_device_and_blocks_go_before_the_variable(selection):
    first, last = runtime.devices()[0], runtime.devices()[-1]
    with config.override(device=last.index):
        assert runtime.get_device() is last
        assert runtime.set_device(first) is first
        assert runtime.get_device() is first
        with runtime.device(last.index) as inside:
            assert inside is runtime.get_device() is last
            with runtime.device(first):
                assert runtime.get_device() is first
            assert runtime.get_device() is last
        assert runtime.get_device() is first
        assert runtime.set_device(None) is last


def test_a_bad_spec_changes_nothing(selection):
    before = runtime.get_device()
    with pytest.raises(DeviceError):
        runtime.set_device("no-such-device")
    with pytest.raises(DeviceError), runtime.device("no-such-device"):
        pass
    assert runtime.get_device() is before


def test_a_block_is_for_its_own_thread_and_set_device_for_all(selection):
    first, last = runtime.devices()[0], runtime.devices()[-1]
    runtime.set_device(first)
    seen = []
    with runtime.device(last):
        thread = threading.Thread(target=lambda: seen.append(runtime.get_device()))
        thread.start()
        thread.join()
        copied = contextvars.copy_context()
        seen.append(copied.run(runtime.get_device))
    assert seen == [first, last]


# --- a device that does not work -----------------------------------------------------------------


def test_a_broken_device_is_left_out_with_one_warning(fresh):
    breaking(fresh, lambda platform: True)
    with pytest.warns(DeviceWarning) as caught:
        assert runtime.devices() == []
    assert len(caught) == len(runtime.listed())
    for device, warning in zip(
        sorted(runtime.listed(), key=runtime.preference.preference), caught, strict=True
    ):
        text = str(warning.message)
        assert device.name in text
        assert "unknown target CPU 'generic'" in text
        assert "pip install 'clfuse[intel]'" in text
        assert warning.filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert runtime.devices() == []


def test_the_default_passes_over_a_broken_device(fresh):
    best = min(runtime.listed(), key=runtime.preference.preference)
    rest = [device for device in runtime.listed() if device.platform_name != best.platform_name]
    if not rest:
        pytest.skip("needs two platforms")
    breaking(fresh, lambda platform: platform == best.platform_name)
    with config.override(device=""), pytest.warns(DeviceWarning, match="left out"):
        assert runtime.get_device() in rest


def test_a_broken_device_that_is_asked_for_is_an_error(fresh):
    breaking(fresh, lambda platform: True, "clBuildProgram failed: no such luck")
    for device in runtime.listed():
        with pytest.raises(DeviceError, match="no such luck") as caught:
            runtime.find(device.index)
        assert device.platform_name in str(caught.value)
        with pytest.raises(DeviceError, match="no such luck"):
            _ = device.queue
        with pytest.raises(DeviceError, match="no such luck"):
            _ = device.context


def test_a_wrong_result_of_the_probe_is_a_cause(fresh):
    fresh.setattr(probing, "PROBE_SOURCE", probing.PROBE_SOURCE.replace("+ 1", "+ 2"))
    device = runtime.listed()[0]
    assert not device.usable
    assert "instead of [1, 4, 7" in device.cause


def test_a_compiler_that_fails_is_a_cause(fresh):
    fresh.setattr(probing, "PROBE_SOURCE", "__kernel void probe( nonsense")
    device = runtime.listed()[0]
    assert not device.usable
    assert "BUILD_PROGRAM_FAILURE" in device.cause
    assert "\n" not in device.cause


def test_without_a_usable_device_the_error_says_what_to_install(fresh):
    breaking(fresh, lambda platform: True)
    with (
        config.override(device=""),
        pytest.warns(DeviceWarning),
        pytest.raises(DeviceError, match="no usable OpenCL device") as caught,
    ):
        runtime.get_device()
    assert "apt-get install pocl-opencl-icd" in str(caught.value)


# --- processes of their own ----------------------------------------------------------------------

SHOW = (
    "from clfuse.runtime.devices.selection import devices; "
    "print([device.platform_name for device in devices()])"
)
GET = "from clfuse.runtime.devices import selection; selection.get_device()"


def test_without_a_runtime_the_error_says_what_to_install(tmp_path):
    finished = python(GET, OCL_ICD_VENDORS=str(tmp_path), CLFUSE_VENDORS="system")
    assert finished.returncode != 0
    last = finished.stderr.strip().splitlines()[-1]
    assert "no usable OpenCL device" in last
    assert "pip install 'clfuse[intel]'" in last


def test_a_driver_that_does_not_load_is_named_in_the_error(tmp_path):
    missing, damaged = tmp_path / "libmissing.so", tmp_path / "libdamaged.so"
    damaged.write_bytes(b"not a library")
    (tmp_path / "a.icd").write_text(f"{missing}\n")
    (tmp_path / "b.icd").write_text(f"{damaged}\n")
    finished = python(GET, OCL_ICD_VENDORS=str(tmp_path), CLFUSE_VENDORS="system")
    last = finished.stderr.strip().splitlines()[-1]
    assert f"a.icd names {missing}, which does not load" in last
    assert f"b.icd names {damaged}, which does not load" in last


def test_drivers_that_do_not_load_keep_nobody_else_away(tmp_path):
    working = {name: text for name, text in vendors.drivers().items() if "clfuse" not in name}
    if not working:
        pytest.skip("the system lists no driver")
    for name, library in working.items():
        (tmp_path / name).write_text(f"{library}\n")
    (tmp_path / "broken.icd").write_text(f"{tmp_path}/libmissing.so\n")
    alone = python(SHOW, CLFUSE_VENDORS="system")
    beside = python(SHOW, OCL_ICD_VENDORS=str(tmp_path), CLFUSE_VENDORS="system")
    assert beside.returncode == 0, beside.stderr
    assert sorted(eval(beside.stdout)) == sorted(eval(alone.stdout)) != []


def test_intels_runtime_is_found_without_any_variable(tmp_path):
    if not vendors._intel_drivers():
        pytest.skip("clfuse[intel] is not installed")
    finished = python(
        "import os\n"
        "for name in ('OCL_ICD_VENDORS', 'LD_LIBRARY_PATH'): os.environ.pop(name, None)\n"
        f"{SHOW}\n"
        "assert 'OCL_ICD_VENDORS' not in os.environ",
        CLFUSE_VENDORS="",
        XDG_CACHE_HOME=str(tmp_path),
    )
    assert finished.returncode == 0, finished.stderr
    assert "Intel(R) OpenCL" in finished.stdout
    assert list(Path(tmp_path, "clfuse").glob("vendors-*/clfuse-libintelocl.icd"))


def test_everything_works_where_no_cache_can_be_written():
    finished = python(SHOW, XDG_CACHE_HOME="/proc/nowhere")
    assert finished.returncode == 0, finished.stderr
    assert finished.stderr.count("Warning: clfuse keeps no compiled kernels") == 1
    assert sorted(eval(finished.stdout)) == sorted(d.platform_name for d in runtime.devices())


FORKED = """
import os, sys, warnings
import numpy
import clfuse as np
from clfuse.errors import DeviceError

warnings.simplefilter("ignore", DeprecationWarning)  # threads, and a fork
ones = numpy.ones(300_000)
computed = np.sort(np.linspace(1, 0, 600_000))
computed.sum().item()
recorded = np.sin(computed) * 2
seen = numpy.asarray(computed)
shares_memory = np.get_device().traits.unified_memory
shared = np.asarray(ones, copy=False if shares_memory else None)
key = np.random.default_rng(5)
drawn = np.random.default_rng(5).normal(size=200_000).get()
square = np.jit(lambda a: a * a + 1)
square(computed)

code = "__kernel void twice(__global double *x) { x[get_global_id(0)] *= 2; }"
twice = np.RawKernel(code, "twice")

def check_what_was_there():
    expected = numpy.sort(numpy.linspace(1, 0, 600_000))
    numpy.testing.assert_allclose(recorded.get(), numpy.sin(expected) * 2, rtol=1e-14)
    numpy.testing.assert_array_equal(computed.get(), expected)
    computed[:] = computed[::-1].copy()
    computed.sort()
    numpy.testing.assert_array_equal((computed * 2)[::-7], (expected * 2)[::-7])
    numpy.testing.assert_array_equal(numpy.asarray(square(computed)), expected * expected + 1)
    assert (shared + 1).sum() == 600_000
    computed[5] = 77

def check_that_it_stayed_on_the_device():
    for read in (computed.get, recorded.get, (computed + 1).sum().item, (shared + 1).get,
                 lambda: square(computed).get()):
        try:
            read()
        except DeviceError as error:
            assert 'spawn' in str(error), error
        else:
            raise AssertionError("it was read")

def check():
    if shares_memory or os.getpid() == parent:
        check_what_was_there()
    else:
        check_that_it_stayed_on_the_device()
    assert seen[-1] == 1
    numpy.testing.assert_allclose(key.normal(size=200_000).get(), drawn, rtol=1e-12, atol=1e-15)
    made = np.arange(1e6)
    made[made > 10] = 0
    assert made.sum() == 55 and (made @ made).item() == 385 and np.cumsum(made)[-1] == 55
    given = numpy.arange(9e5)
    numpy.testing.assert_array_equal(np.sqrt(np.asarray(given))[::-2], numpy.sqrt(given)[::-2])
    np.synchronize()

parent = os.getpid()
"""


CHOSEN = {key: os.environ[key] for key in ("CLFUSE_DEVICE",) if key in os.environ}


def forked(in_child: str) -> subprocess.CompletedProcess[str]:
    """Run `FORKED`, and a process forked from it that runs `in_child` and ends with code 0."""
    return python(
        FORKED + "child = os.fork()\n"
        "if child == 0:\n"
        "    code = 1\n"
        "    try:\n"
        + textwrap.indent(in_child, "        ")
        + "\n        code = 0\n"
        "    finally:\n"
        "        import traceback; traceback.print_exc()\n"
        "        sys.stderr.flush()\n"
        "        os._exit(code)\n"
        "code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])\n"
        "check()\n"
        "sys.exit(code)\n",
        **CHOSEN,
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_computes_with_numpy():
    finished = forked("check()")
    assert finished.returncode == 0, finished.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_says_why_it_runs_no_user_kernel():
    finished = forked(
        "try:\n"
        "    twice(computed.shape, (1,), (computed,))\n"
        "    computed.get()\n"
        "except DeviceError as error:\n"
        "    assert 'spawn' in str(error), error\n"
        "else:\n"
        "    raise AssertionError('it ran')"
    )
    assert finished.returncode == 0, finished.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_ends_as_any_other():
    finished = python(
        FORKED + "child = os.fork()\n"
        "if child == 0:\n"
        "    check()\n"
        "    sys.exit(3)\n"
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) - 3)\n",
        **CHOSEN,
    )
    assert finished.returncode == 0, finished.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("is_used_before", [False, True])
def test_a_fork_with_pending_work_says_nothing_and_computes_it(is_used_before):
    """What is computed for a fork must not import what registers functions of forks."""
    finished = python(
        "import os, warnings\n"
        "import clfuse as np\n"
        "warnings.simplefilter('ignore', DeprecationWarning)\n"
        f"before = (np.arange(10) + 1).sum().item() if {is_used_before} else None\n"
        "recorded = np.arange(1000) + 1\n"
        "child = os.fork()\n"
        "if child or before is None:  # what lies on a device a forked process may not have\n"
        "    assert (recorded * 2).sum() == 1_001_000\n"
        "if child == 0:\n"
        "    os._exit(0)\n"
        "raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n",
        CLFUSE_HOST_US="0",
        **CHOSEN,
    )
    assert finished.returncode == 0, finished.stderr
    assert finished.stderr == ""


def test_a_device_that_does_not_answer_what_it_is_does_not_work(fresh):
    import pyopencl as cl

    def silent(handle, platform):
        raise cl.LogicError("clGetDeviceInfo failed: INVALID_VALUE")

    fresh.setattr(device_module, "_read_traits", silent)
    device = runtime.listed()[0]
    assert not device.usable
    assert "does not answer" in device.cause
    assert device.traits.name == device.name or device.simulation is not None
    assert isinstance(device.traits, DeviceTraits)
