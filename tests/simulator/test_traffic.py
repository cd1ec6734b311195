"""The sectors of kernels whose accesses are known by hand, and of programs of the benchmark."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from clfuse.tools.bench import oclgrind, traffic
from clfuse.tools.bench.command import main as command
from clfuse.tools.bench.oclgrind import Measured, SimulatorError, under
from clfuse.tools.bench.traffic import Row, flags

# Two groups of 256 work-items: 16 warps of 32. Each kernel has `a` to read, `b` to write.
ITEMS, GROUP = 512, 256


class Sectors(NamedTuple):
    """Of all warps: requests, sectors, those of whole vectors, those that their bytes fill."""

    requests: int
    sectors: int
    whole: int
    least: int


def each(
    requests: int, sectors: int, whole: int | None = None, least: int | None = None
) -> Sectors:
    """The same in each of the 16 warps; a vector is one request if nothing else is said."""
    whole = sectors if whole is None else whole
    least = whole if least is None else least
    return Sectors(16 * requests, 16 * sectors, 16 * whole, 16 * least)


CONTIGUOUS = each(1, 4)  # 32 lanes of 4 bytes
NOTHING = each(0, 0)

# name -> body, loads, stores
KERNELS: dict[str, tuple[str, Sectors, Sectors]] = {
    "contiguous": ("b[i] = a[i];", CONTIGUOUS, CONTIGUOUS),
    "bytes": ("((__global char*)b)[i] = ((__global char*)a)[i];", each(1, 1), each(1, 1)),
    "doubles": ("((__global double*)b)[i] = ((__global double*)a)[i];", each(1, 8), each(1, 8)),
    "vectors": ("((__global float4*)b)[i] = ((__global float4*)a)[i];", each(1, 16), each(1, 16)),
    "long_vectors": (  # two loads of 16 bytes, 32 bytes apart
        "((__global double4*)b)[i] = ((__global double4*)a)[i];", each(2, 64, 32), each(2, 64, 32),
    ),
    "vectors_of_any_place": (  # four loads of 4 bytes, 16 bytes apart
        "vstore4(vload4(i, a), i, b);", each(4, 64, 16), each(4, 64, 16),
    ),
    "aligned_to_elements": (
        "*(__global any4*)(b + 4 * i) = *(__global any4*)(a + 4 * i);",
        each(4, 64, 16), each(4, 64, 16),
    ),
    "misaligned": ("b[i] = a[i + 1];", each(1, 5, least=4), CONTIGUOUS),
    "every_second": ("b[i] = a[2 * i];", each(1, 8, least=4), CONTIGUOUS),
    "columns": ("b[i] = a[64 * i];", each(1, 32, least=4), CONTIGUOUS),
    "transposed": (  # of 16 x 32 to 32 x 16: a warp writes a column
        "b[16 * (i % 32) + i / 32] = a[i];", CONTIGUOUS, each(1, 32, least=4),
    ),
    "backwards": ("b[511 - i] = a[i];", CONTIGUOUS, CONTIGUOUS),
    "broadcast": ("b[i] = a[3];", each(1, 1), CONTIGUOUS),
    "shifted_twice": ("b[i] = a[i] + a[i + 8];", each(2, 8), CONTIGUOUS),
    "scattered": ("b[(i * 97 % 512) * 8] = a[i];", CONTIGUOUS, each(1, 32, least=4)),
    "some_lanes": ("if (i % 2) b[i] = a[i];", each(1, 4, least=2), each(1, 4, least=2)),
    "loops_that_end_elsewhere": (  # half of the lanes go twice, 2048 bytes further on
        "for (int k = 0; k <= i / 16 % 2; k++) b[i + 512 * k] = a[i + 512 * k];",
        each(2, 6), each(2, 6),
    ),
}  # fmt: skip

SOURCE = "typedef float any4 __attribute__((ext_vector_type(4), aligned(4)));\n" + "\n".join(
    f"__kernel void {name}(__global float *a, __global float *b)"
    f" {{ int i = get_global_id(0); {body} }}"
    for name, (body, _, _) in KERNELS.items()
) + """
__kernel void turned(__global float *a, __global float *b) {
    __local float tile[GROUP];
    const int l = get_local_id(0), i = get_global_id(0);
    tile[l] = a[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    b[i] = tile[255 - l];
}
__kernel void one_bank(__global float *a, __global float *b) {
    __local float tile[32 * GROUP / 8];
    const int l = get_local_id(0), i = get_global_id(0);
    tile[32 * (l % 32)] = a[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    b[i] = tile[0];
}
__kernel void counted(__global int *a, __global int *b) {
    __local int count;
    if (get_local_id(0) == 0) count = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    atomic_inc(&count);
    atomic_add(&b[get_global_id(0) % 8], 1);
}
__kernel void rounds(__global float *a, __global float *b) {
    for (int k = 0; k < 3; k++) {
        b[get_global_id(0)] = a[get_global_id(0)] + k;
        barrier(CLK_GLOBAL_MEM_FENCE);
    }
}
__kernel void rereads(__global float *a, __global float *b) {
    const int i = get_global_id(0);
    b[i] = 1;
    b[i] += a[i / 2];
}
"""

RUN = """
import pathlib, sys
import pyopencl as cl
context = cl.Context([cl.get_platforms()[0].get_devices()[0]])
queue = cl.CommandQueue(context)
a, b = [cl.Buffer(context, cl.mem_flags.READ_WRITE, 1 << 18) for _ in range(2)]
source = pathlib.Path(sys.argv[1]).read_text()
program = cl.Program(context, source).build(["-cl-opt-disable"])
for kernel in sys.argv[4:]:
    getattr(program, kernel)(queue, (int(sys.argv[2]),), (int(sys.argv[3]),), a, b)
queue.finish()
"""


def counted(folder: Path, items: int, group: int, *kernels: str) -> dict[str, Measured]:
    """What the plugin counts of some kernels."""
    path = folder / "kernels.cl"
    path.write_text(SOURCE.replace("GROUP", str(GROUP)), encoding="utf-8")
    found = under([sys.executable, "-c", RUN, str(path), str(items), str(group), *kernels], folder)
    assert [launch.kernel for launch in found] == list(kernels)
    return {launch.kernel: launch for launch in found}


@pytest.fixture(scope="module")
def launches(simulator: Path) -> dict[str, Measured]:
    others = ("turned", "one_bank", "counted", "rounds", "rereads")
    return counted(simulator, ITEMS, GROUP, *KERNELS, *others)


def sectors(counts: oclgrind.Counts) -> Sectors:
    return Sectors(counts.requests, counts.sectors, counts.whole, counts.least)


@pytest.mark.parametrize("name", KERNELS)
def test_sectors_of_a_kernel_are_those_that_its_indices_say(
    launches: dict[str, Measured], name: str
) -> None:
    _, loads, stores = KERNELS[name]
    launch = launches[name]
    assert (launch.work_items, launch.work_group, launch.groups, launch.warps) == (512, 256, 2, 16)
    assert sectors(launch.loads) == loads
    assert sectors(launch.stores) == stores


def test_bytes_and_sectors_of_groups_count_once(launches: dict[str, Measured]) -> None:
    plain, columns, broadcast = (launches[name] for name in ("contiguous", "columns", "broadcast"))
    assert (plain.read_nbytes, plain.written_nbytes) == (2048, 2048)
    assert (plain.fetched_sectors, plain.written_sectors) == (64, 64)
    assert (columns.read_nbytes, columns.fetched_sectors) == (2048, 512)
    assert (broadcast.read_nbytes, broadcast.fetched_sectors) == (4, 2)  # one a group
    assert launches["shifted_twice"].fetched_sectors == 66  # 256 elements and 8 more, twice
    assert launches["rereads"].read_nbytes == 1024  # b was written before it is read
    assert launches["contiguous"].sector_nbytes == launches["contiguous"].cached_nbytes == 4096


def test_rounds_between_barriers_are_requests_of_their_own(launches: dict[str, Measured]) -> None:
    assert sectors(launches["rounds"].loads) == each(3, 12)
    rounds = launches["rounds"]
    assert rounds.loads.requests + rounds.stores.requests == 6 * rounds.warps
    assert rounds.fetched_sectors == 64


def test_local_memory_has_requests_and_conflicts(launches: dict[str, Measured]) -> None:
    turned, one_bank = launches["turned"].local, launches["one_bank"].local
    assert (turned.requests, turned.asked, turned.passes, turned.least) == (32, 4096, 32, 32)
    # Stores of 32 words of one bank take 32 passes; the loads of one word take one.
    assert (one_bank.requests, one_bank.passes, one_bank.least) == (32, 16 * 32 + 16, 32)
    assert launches["contiguous"].local.requests == 0
    assert sectors(launches["turned"].loads) == CONTIGUOUS


def test_atomics_are_counted_by_memory(launches: dict[str, Measured]) -> None:
    launch = launches["counted"]
    assert (launch.atomics, launch.local_atomics) == (512, 512)
    assert (launch.read_nbytes, launch.written_nbytes) == (32, 32)
    assert sectors(launch.loads) == NOTHING


def test_last_warp_of_a_group_may_have_fewer_lanes(simulator: Path) -> None:
    launch = counted(simulator, 96, 48, "contiguous")["contiguous"]
    assert (launch.groups, launch.warps) == (2, 4)  # of 32 and 16 lanes
    assert sectors(launch.loads) == (4, 12, 12, 12)


# -- programs --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def table(simulator: Path) -> dict[str, list[Row]]:
    rows = traffic.measure(["triad", "transpose_add", "colsum", "gather"], traffic.QUICKER)
    return {
        name: [row for row in rows if row.program == name]
        for name in dict.fromkeys(row.program for row in rows)
    }


def test_contiguous_map_touches_what_it_must(table: dict[str, list[Row]]) -> None:
    (row,) = table["triad"]
    assert (row.kind, row.launches, row.nbytes) == ("map", 1, 3 * 4 * 16_000)
    assert row.whole_nbytes == 3 * 4 * 16_000_000
    assert row.touched_nbytes == row.nbytes
    assert row.per_vector == pytest.approx(1.0, abs=0.02)
    assert row.by_group == pytest.approx(1.0, abs=0.02)
    # In pieces of 4 bytes where the kernel does not know that vectors are aligned, and whole else.
    assert row.ratio == pytest.approx(4.0 if "pieces" in flags(row) else 1.0, abs=0.02)


def test_sum_with_a_transpose_stands_out(table: dict[str, list[Row]]) -> None:
    (row,) = table["transpose_add"]
    plain = table["triad"][0]
    assert row.nbytes == 2 * 4 * 120 * 120
    if row.total(lambda launch: launch.local.asked):  # through a tile in local memory
        assert row.per_vector < 1.3
        assert "apart" not in flags(row)
    else:  # the columns of a row-major array: a lane, a sector
        assert row.per_vector > 3
        assert row.ratio > 1.9 * plain.ratio
        assert flags(row)[0] == "apart"


def test_columns_have_their_work_items_counted_on_whole_inputs(table: dict[str, list[Row]]) -> None:
    first = table["colsum"][0]
    assert first.kind == "reduce"
    assert first.per_vector == pytest.approx(1.0, abs=0.02)
    assert first.whole_nbytes >= 8000 * 1000 * 4
    few = first.work_items < traffic.ENOUGH_ITEMS * 132
    assert ("few" in flags(first)) == few


def test_elements_at_random_places_lie_apart(table: dict[str, list[Row]]) -> None:
    row = table["gather"][-1]
    assert row.whole_nbytes is None  # the plan asks for the least and the largest position
    loads = traffic.multiple(row, "loads", "whole", "least")
    assert loads == pytest.approx(2.5, abs=0.1)  # positions 1, elements of 8 bytes 4
    assert flags(row)[0] == "apart"


def test_command_writes_the_table(simulator: Path, tmp_path: Path, capfd: Any) -> None:
    markdown, record = tmp_path / "table.md", tmp_path / "table.json"
    arguments = ["small", "--traffic", "--quick", "--markdown", str(markdown)]
    assert command([*arguments, "--json", str(record)]) == 0
    text = markdown.read_text(encoding="utf-8")
    assert text in capfd.readouterr().out
    assert text.startswith("| program ")
    assert "| small " in text
    (row,) = json.loads(record.read_text(encoding="utf-8"))["traffic"]
    assert (row["program"], row["nbytes"], row["launches"]) == ("small", 24_000, 1)


def test_command_that_fails_under_oclgrind_is_named(simulator: Path) -> None:
    with pytest.raises(SimulatorError, match="under Oclgrind ended with 3"):
        under([sys.executable, "-c", "raise SystemExit(3)"], simulator)
