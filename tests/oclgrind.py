"""Runs a chosen part of the tests under Oclgrind: no access out of bounds, no data race, anywhere.

    python -m tests.oclgrind              # the subset below, with both schedules

Oclgrind takes the place of the OpenCL library for the process that it starts, interprets every
kernel and reports invalid reads and writes, reads of uninitialised memory where asked for, races
and diverging barriers. Any report is a failure, but for volatile loads of words that others change
by atomics: OpenCL C 1.2 has no other load that is atomic. So is a run in which no kernel ran on
Oclgrind, and a run in which a kernel with known faults goes unreported. Values do not count here:
the simulator itself computes some instructions wrongly. ci/test calls this.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
SCHEDULES = ("cpu", "gpu")
# Small tests that between them launch every kind of kernel. The simulator runs about a million
# instructions a second.
SUBSET = (
    "tests/device/arrays/test_views.py::test_overlapping_reads_and_writes_read_first"
    "[float32]",
    "tests/device/arrays/test_views.py::test_in_place_operators_write_through_every_alias",
    "tests/device/arrays/test_views.py::test_real_and_imaginary_parts_are_views[complex64]",
    "tests/device/arrays/test_views.py::test_setitem_casts_and_broadcasts_as_under_numpy"
    "[broadcast column]",
    "tests/device/functions/test_ufuncs.py::test_out_may_overlap_the_operands",
    "tests/device/functions/test_ufuncs.py::test_where_leaves_the_rest_of_out_alone",
    "tests/device/functions/test_ufuncs.py::test_operators_do_what_their_ufuncs_do[float64]",
    "tests/device/functions/test_ufuncs.py::test_strided_flipped_and_transposed_operands_agree"
    "[float32]",
    "tests/device/functions/test_reductions.py::test_views_reduce_like_arrays",
    "tests/device/functions/test_reductions.py::test_what_is_reduced_may_be_an_expression",
    "tests/device/functions/test_reductions.py::test_where_says_which_elements_count",
    "tests/device/functions/test_reductions.py::test_ddof_divides_by_fewer[std]",
    "tests/device/schedule/test_rows.py::test_rows_of_special_values_agree_with_numpy",
    "tests/device/schedule/test_tiles.py::test_axes_in_every_order",
    "tests/device/schedule/test_time_tiles.py"
    "::test_steps_are_the_same_of_every_size[turns-(33, 65)]",
    "tests/device/schedule/test_time_tiles.py"
    "::test_steps_are_the_same_of_every_size[life-(33, 65)]",
    "tests/device/schedule/test_time_tiles.py::test_random_loops_of_statements_are_the_same",
    "tests/device/schedule/test_guards.py::test_random_statements_over_random_boxes[(70,)]",
    "tests/device/schedule/test_guards.py::test_nan_and_infinity_behind_a_write_to_a_part",
    "tests/device/schedule/test_guards.py::test_kernels_in_python_over_unequal_ranges_are_one_launch",
    "tests/device/schedule/test_guards.py::test_scans_of_kernels_over_unequal_ranges_are_one_launch"
    "[300-cached]",
    "tests/device/schedule/test_guards.py::test_scans_of_all_kinds_over_a_part_behind_a_write"
    "[0-add-float32]",
    "tests/device/schedule/test_guards.py::test_scans_of_all_kinds_over_a_part_behind_a_write"
    "[1-add-float32]",
    "tests/device/schedule/test_guards.py::test_folds_of_all_kinds_over_parts_behind_a_write"
    "[0-sum-float32]",
    "tests/device/schedule/test_guards.py::test_folds_of_all_kinds_over_parts_behind_a_write"
    "[0-all-bool]",
    "tests/device/schedule/test_row_blocks.py::test_batches_of_rows_are_numpys",
    "tests/device/schedule/test_interleaved.py::test_points_that_are_changed_where_they_lie",
    "tests/device/schedule/test_interleaved.py::test_first_and_last_columns_of_views_in_any_place[float32]",
    "tests/device/schedule/test_interleaved.py::test_columns_that_are_written_together[cached-float32]",
    "tests/device/schedule/test_columns_written.py::test_random_writes_from_random_columns[False-5]",
    "tests/device/schedule/test_columns.py::test_a_step_down_of_several_rows_leaves_none_out[cpu]",
    "tests/device/functions/test_scans.py::test_every_ufunc_scans_every_dtype[cpu-int8]",
    "tests/device/functions/test_scans.py::test_every_ufunc_scans_every_dtype[gpu-int8]",
    "tests/device/functions/test_masks.py::test_masks_of_leading_axes_and_of_views_select_as_numpys[cpu]",
    "tests/device/functions/test_masks.py::test_masks_of_leading_axes_and_of_views_select_as_numpys[gpu]",
    "tests/device/functions/test_array_semantics_creation.py::test_moves_of_values_agree_with_numpy"
    "[concatenate]",
    "tests/device/functions/test_array_semantics_creation.py::test_moves_of_values_agree_with_numpy[pad]",
    "tests/device/functions/test_array_semantics_creation.py::test_products_of_vectors_and_matrices[float32]",
    "tests/device/classes/test_array_semantics_laziness.py::"
    "test_results_do_not_depend_on_when_they_are_evaluated",
    "tests/device/classes/test_array_semantics_laziness.py::"
    "test_sources_views_and_moves_are_computed_where_read",
    "tests/device/functions/test_gathering.py::test_random_indices_select_and_write_what_numpys_do",
    "tests/device/functions/test_scattering.py::test_few_elements_are_counted_and_written_in_every_way",
    "tests/device/functions/test_searching.py::test_places_among_sorted_elements[int32]",
    "tests/device/user_kernels/test_launches.py::"
    "test_every_scalar_type_arrives_also_where_calls_differ",
    "tests/device/user_kernels/test_launches.py::"
    "test_random_launches_and_array_code_agree_with_numpy[cpu-on]",
    "tests/device/user_kernels/test_kernels_language.py::test_two_indices_and_views",
    "tests/device/user_kernels/test_kernels_language.py::test_work_groups",
    "tests/device/user_kernels/test_kernels_barriers.py::test_barriers_that_all_work_items_of_a_group_come_to",
    "tests/device/user_kernels/test_kernels_language.py::test_bounds_are_checked_where_asked_for",
    "tests/device/user_kernels/test_kernels_language.py::test_random_numbers_by_counter",
    "tests/device/user_kernels/test_kernels_lanes.py",
    "tests/device/user_kernels/test_kernels_abreast.py::"
    "test_loops_that_end_apart_have_the_bits_of_single_ones[nested-float64-64]",
    "tests/device/user_kernels/test_kernels_abreast.py::"
    "test_loops_that_end_apart_have_the_bits_of_single_ones[searches-float32-16]",
    "tests/device/user_kernels/test_kernels_abreast.py::test_what_such_kernels_return",
    "tests/device/user_kernels/test_raw_kernels.py::test_raw_arrays_are_indexed_by_the_body",
    "tests/device/user_kernels/test_raw_kernels.py::"
    "test_any_other_fold_is_a_launch_in_two_stages_if_long[shape1]",
    "tests/device/test_fuzz.py",
)
FUZZ_PROGRAMS = "40"
MOST_REPORTS = 10  # shown

# Two work-items write one element, and one writes past the end.
FAULTY = """
import numpy, pyopencl
context = pyopencl.Context([pyopencl.get_platforms()[0].get_devices()[0]])
queue = pyopencl.CommandQueue(context)
buffer = pyopencl.Buffer(context, pyopencl.mem_flags.READ_WRITE, 64)
source = '''__kernel void faulty(__global int *a)
{
    const int i = get_global_id(0);
    a[i / 2] = i;
    a[i + 1] = i;
}'''
kernel = pyopencl.Program(context, source).build().faulty
kernel(queue, (16,), None, buffer)
queue.finish()
"""


def subset_of(schedule: str) -> list[str]:
    """The subset without the cases that plan for another schedule by themselves.

    >>> [len(SUBSET) - len(subset_of(schedule)) for schedule in SCHEDULES]
    [2, 4]
    """
    others = [f"[{other}" for other in SCHEDULES if other != schedule]
    return [name for name in SUBSET if not any(other in name for other in others)]


@dataclass(frozen=True, slots=True)
class Run:
    """What one process under Oclgrind did."""

    status: int
    output: str
    log: str


def under_oclgrind(command: Sequence[str], options: Sequence[str] = (),
                   environment: dict[str, str] | None = None) -> Run:
    """Run a command with Oclgrind as its OpenCL library."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        done = subprocess.run(
            ["oclgrind", "--data-races", *options, "--log", str(log), *command], cwd=ROOT,
            env={**os.environ, **(environment or {})}, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, check=False)
        text = log.read_text(errors="replace") if log.exists() else ""
    return Run(done.returncode, done.stdout, text)


def is_atomic_load(block: Sequence[str]) -> bool:
    """Whether a report is of a volatile load of one word beside an atomic change of it.

    >>> race = "Read-write data race at global memory address 0x10"
    >>> load = "    %27 = load volatile i32, i32 addrspace(1)* %26, align 4"
    >>> change = "    %9 = call spir_func i32 @_Z10atomic_maxPU3AS1Vii(i32 addrspace(1)* %2)"
    >>> is_atomic_load([race, load, change])
    True
    >>> is_atomic_load([race, load.replace(" volatile", ""), change])
    False
    >>> is_atomic_load([race, load, "    store i32 %6, i32 addrspace(1)* %5, align 4"])
    False
    """
    instructions = [line for line in block[1:]
                    if any(f" {what} " in line for what in ("load", "store", "call"))]
    return (block[0].startswith("Read-write data race") and len(instructions) == 2
            and any(" load volatile i32" in line for line in instructions)
            and any("@_Z" in line and "atomic_" in line for line in instructions))


def reports(log: str) -> list[str]:
    """The different reports in a log, each once: what, and where in which kernel.

    A report is a headline at the left margin and its indented lines; addresses and work-items
    differ from one to the next of the same fault.
    """
    found: dict[tuple[str, ...], tuple[str, int]] = {}
    block: list[str] = []
    for line in [*log.splitlines(), "end"]:
        if line.strip() and not line[0].isspace() and block:
            key = (block[0].split(" at ")[0],
                   *(b.strip() for b in block if "At line" in b or "Kernel:" in b))
            if not is_atomic_load(block):
                text, times = found.get(key, ("\n".join(block), 0))
                found[key] = text, times + 1
            block = []
        if line.strip() and (block or not line[0].isspace()):
            block.append(line.rstrip())
    return [f"{text}\n  ({times} times)" for text, times in found.values()]


def inside(arguments: Sequence[str], summary: Path) -> int:
    """In the process under Oclgrind: run the tests, and write down what ran on what."""
    import pytest

    status = pytest.main(list(arguments))
    import clfuse

    summary.write_text(json.dumps({
        "platform": clfuse.get_device().platform_name,
        "kernels": clfuse.stats()["kernels_launched"]}))
    return int(status)


def check_that_faults_are_seen() -> str | None:
    """Why the check itself cannot be trusted, or None."""
    run = under_oclgrind([sys.executable, "-c", FAULTY])
    seen = "\n".join(reports(run.log))
    for wanted in ("Invalid write", "data race"):
        if wanted not in seen:
            return f"a kernel with known faults gave no «{wanted}»: {run.output[-2000:]}{seen}"
    return None


def check_subset(schedule: str, options: argparse.Namespace) -> list[str]:
    """What is wrong with the subset under one schedule; nothing, if the list is empty."""
    with tempfile.TemporaryDirectory() as folder:
        summary = Path(folder) / "summary.json"
        environment = {"CLFUSE_SCHEDULE": schedule, "CLFUSE_DEVICE": "oclgrind",
                       "CLFUSE_TEST_DEVICE": "required", "CLFUSE_TEST_SIMULATOR": "1",
                       "CLFUSE_FALLBACK": "allow", "CLFUSE_FUZZ_PROGRAMS": options.programs}
        run = under_oclgrind(
            [sys.executable, "-m", "tests.oclgrind", "--inside", str(summary), "-q", "--tb=short",
             "-p", "no:cacheprovider", *(options.tests or subset_of(schedule))],
            ["--uninitialized"] if options.uninitialized else [], environment)
        ran = json.loads(summary.read_text()) if summary.exists() else {}
    print(f"{schedule} schedule: {ran.get('kernels', 0)} kernels on {ran.get('platform')}; "
          + (run.output.strip().splitlines() or ["no output"])[-1], flush=True)
    problems = [f"{schedule} schedule: {r}" for r in reports(run.log)]
    if run.status:
        problems.append(f"{schedule} schedule: tests failed\n{run.output[-6000:]}")
    if "oclgrind" not in str(ran.get("platform")).lower():
        problems.append(f"{schedule} schedule: the tests ran on {ran.get('platform')}")
    if not ran.get("kernels"):
        problems.append(f"{schedule} schedule: no kernel ran")
    return problems


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; 1 if anything is wrong."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["--inside"]:
        return inside(given[2:], Path(given[1]))
    parser = argparse.ArgumentParser(prog="python -m tests.oclgrind", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedule", choices=SCHEDULES, action="append",
                        help="only this one; both by default")
    parser.add_argument("--programs", default=FUZZ_PROGRAMS,
                        help=f"random programs (default {FUZZ_PROGRAMS})")
    parser.add_argument("--uninitialized", action="store_true",
                        help="also report reads of memory that nobody wrote")
    parser.add_argument("tests", nargs="*", help="tests instead of the chosen subset")
    options = parser.parse_args(given)
    if shutil.which("oclgrind") is None:
        print("oclgrind is not installed: apt-get install oclgrind", file=sys.stderr)
        return 1
    problem = check_that_faults_are_seen()
    problems = [problem] if problem else []
    for schedule in options.schedule or SCHEDULES if not problem else ():
        problems += check_subset(schedule, options)
    for text in problems[:MOST_REPORTS]:
        print(text)
    if problems:
        print(f"{len(problems)} problems under Oclgrind", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
