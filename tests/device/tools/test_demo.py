"""Demo and benchmark run to the end with NumPy's results, on the device that is current."""

import gc
import json
import subprocess
import sys
from pathlib import Path

import numpy
import pytest
from PIL import Image

from clfuse.runtime.devices.selection import get_device
from clfuse.runtime.memory.buffers import allocate, download, write
from clfuse.tools.bench import measure, table
from clfuse.tools.bench.contenders import Clfuse, Jit, NumPy
from clfuse.tools.bench.limit import ROWS, Copy, Limit
from clfuse.tools.bench.programs import PROGRAMS, error, results
from clfuse.tools.demo import runner

pytestmark = pytest.mark.clfuse_only

DEMO = runner.program_paths()


def command(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "clfuse", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=600,
    )


# -- the demo --------------------------------------------------------------------------------------


def test_demo_has_the_four_programs():
    assert list(DEMO) == ["black_scholes", "corners", "heat", "monte_carlo"]


@pytest.mark.parametrize("name", DEMO)
def test_demo_program_agrees_with_numpy(name, tmp_path):
    result = runner.measure(DEMO[name], quick=True, folder=tmp_path)
    assert result.agrees, f"largest error {result.error}"
    assert result.kernels > 0
    assert result.nbytes > 0
    assert min(result.numpy_s, result.first_s, result.steady_s) > 0


@pytest.mark.parametrize("name", ["corners", "heat"])
def test_demo_program_draws_the_picture_that_numpy_draws(name, tmp_path):
    pictures = []
    for folder, arguments in (("numpy", []), ("clfuse", ["-m", "clfuse", "run"])):
        (tmp_path / folder).mkdir()
        finished = subprocess.run(
            [sys.executable, *arguments, str(DEMO[name]), "--quick"],
            cwd=tmp_path / folder,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert finished.returncode == 0, finished.stdout + finished.stderr
        with Image.open(tmp_path / folder / f"{name}.png") as picture:
            pictures.append(numpy.asarray(picture).astype(int))
    # A brightness halfway between two steps may be rounded either way.
    assert numpy.abs(pictures[0] - pictures[1]).max() <= 1
    assert numpy.ptp(pictures[0]) > 200


def test_demo_command_prints_a_table_and_writes_pictures(tmp_path):
    finished = command("demo", "--quick", cwd=tmp_path)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    for name in DEMO:
        assert name in finished.stdout
    assert get_device().platform_name in " ".join(finished.stdout.split())  # lines may break
    assert sorted(path.name for path in (tmp_path / "demo-output").iterdir()) == [
        "corners.png",
        "heat.png",
    ]


def test_demo_runs_one_program_and_refuses_an_unknown_one(tmp_path):
    one = command("demo", "--quick", "--only", "corners", "--output", "pictures", cwd=tmp_path)
    assert one.returncode == 0, one.stdout + one.stderr
    assert "heat" not in one.stdout
    assert (tmp_path / "pictures" / "corners.png").exists()
    unknown = command("demo", "--only", "nonsense", cwd=tmp_path)
    assert unknown.returncode == 2
    assert "no program nonsense; there are black_scholes" in unknown.stdout


def test_wrong_result_of_a_demo_program_is_noticed():
    right = {"values": numpy.linspace(1.0, 2.0, 5)}
    assert runner.disagreement(right, {"values": right["values"] + 1e-6})[0] > runner.LARGEST_ERROR
    other = {"values": right["values"].astype(numpy.float32)}
    assert runner.disagreement(right, other)[0] == numpy.inf
    estimate = {"estimate": 1.0, "standard_error": 0.1}
    apart, statistical = runner.disagreement(estimate, {**estimate, "estimate": 2.0})
    assert statistical
    assert apart > runner.LARGEST_STANDARD_ERRORS


# -- the benchmark ---------------------------------------------------------------------------------


# How many elements a mask selects, and how many bins there are, is known when that is computed.
LOOKS = ("mask_select", "histogram")


@pytest.mark.parametrize("name", PROGRAMS)
def test_bench_program_agrees_with_and_without_fusion(name):
    contenders = [Clfuse(), Clfuse(fusion=False), Jit()]
    row = measure.measure(PROGRAMS[name], contenders, quick=True, repetitions=1)
    assert row.footprint is not None
    for contender in contenders:
        if contender.name == "jit" and row.footprint.fallbacks:
            assert "jit" not in row.timings  # what runs on the host cannot be replayed
        elif contender.name == "jit" and name in LOOKS:
            assert "jit" not in row.timings or row.timings["jit"].failure == ""
        else:
            assert row.timings[contender.name].failure == ""
    assert row.ratio("numpy") > 0


@pytest.mark.parametrize("name", ROWS)
def test_kernel_written_by_hand_agrees_with_numpy(name):
    limit = Limit(get_device())
    inputs = PROGRAMS[name].make_inputs(quick=True)
    run = limit.bind(PROGRAMS[name], inputs)
    if run is None:
        assert limit.device.traits.schedule == "gpu", f"{name} is left out on a CPU"
        return
    expected = NumPy().bind(PROGRAMS[name], inputs)()
    for want, got in zip(expected, limit.to_host(run()), strict=True):
        assert error(want, got) <= max(PROGRAMS[name].rtol, measure.CONTRACTION)


def test_contender_that_fails_is_named_and_not_timed():
    class Wrong(NumPy):
        name = "wrong"

        def bind(self, program, inputs):
            return lambda: tuple(value + 1 for value in results(program.compute(numpy, *inputs)))

    class Failing(NumPy):
        name = "failing"

        def bind(self, program, inputs):
            raise RuntimeError("cannot do it")

    row = measure.measure(PROGRAMS["small"], [Wrong(), Failing()], quick=True, repetitions=1)
    assert row.timings["wrong"].failure.startswith("wrong: largest error")
    assert row.timings["failing"].failure == "RuntimeError: cannot do it"
    assert row.best_peer == ""
    assert len(table.failures([row])) == 2


def test_copy_moves_every_byte_twice():
    copy = Copy(get_device(), 1_000_000)
    assert copy.nbytes == 2_000_000
    assert copy.run() == ()


def test_a_copy_writes_to_no_memory_but_its_own():
    nbytes = 1 << 20
    copy = Copy(get_device(), nbytes)
    gc.collect()
    others = [allocate(copy.device, nbytes) for _ in range(8)]
    for other in others:
        write(other, numpy.zeros(nbytes, numpy.uint8))
    copy.run()
    assert not any(download(other, numpy.uint8, (nbytes,)).any() for other in others)


def test_bench_command_writes_json_and_markdown(tmp_path):
    finished = command(
        *("bench", "triad", "sum_of_squares", "recording", "--quick", "--repeat", "2"),
        *("--peers", "none", "--limit", "--unfused", "--json", "out.json", "--markdown", "out.md"),
        cwd=tmp_path,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    record = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert list(record["programs"]) == ["triad", "sum_of_squares"]
    assert record["programs"]["triad"]["contenders"]["clfuse"]["median_s"] > 0
    assert len(record["recording"]) == 5
    text = (tmp_path / "out.md").read_text(encoding="utf-8")
    assert text.startswith(record["context"]["device"])
    assert "| geometric mean" in text
    assert text in finished.stdout


@pytest.mark.parametrize("name", ["demo", "bench"])
def test_device_that_is_not_there_ends_a_command_in_one_line(name, tmp_path):
    finished = command(name, "--device", "nonsense", cwd=tmp_path)
    assert finished.returncode == 1
    assert f"clfuse {name}: no OpenCL device fits 'nonsense'" in finished.stderr
    assert "Traceback" not in finished.stderr


def test_device_option_of_run_selects_the_device(tmp_path):
    index = get_device().index
    code = "import numpy; print(numpy.get_device().index)"
    finished = command("run", "--device", index, "-c", code, cwd=tmp_path)
    assert finished.stdout == f"{index}\n", finished.stderr


def test_doctor_names_the_device_that_is_used(tmp_path):
    finished = command("doctor", cwd=tmp_path)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert f"used: {get_device()!r}" in finished.stdout


def test_devices_command_marks_the_device_that_is_used(tmp_path):
    finished = command("devices", cwd=tmp_path)
    assert finished.returncode == 0, finished.stderr
    (line,) = [line for line in finished.stdout.splitlines() if line.startswith("*")]
    assert get_device().name in line
