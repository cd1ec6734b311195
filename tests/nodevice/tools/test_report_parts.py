"""What the report's parts do without a device: places, shares of lines, looks of the sampler."""

from __future__ import annotations

import sys
import threading
import time
from itertools import pairwise
from types import FrameType
from typing import Any

import numpy as np

from clfuse.ir.nodes import Kind, loop, structural
from clfuse.tools.report import places as places_of_frames
from clfuse.tools.report import sampler
from clfuse.tools.report.places import NOWHERE, PYTHON, STATES, WAIT, Places
from clfuse.tools.report.provenance import shares, with_readers
from clfuse.tools.report.rules import source
from clfuse.tools.report.writing import trouble_with

F8 = np.dtype(np.float64)
LEAF = (None, (4,), 0, F8)
ADD = loop("add", (F8, F8), F8)
SINE = loop("sin", (F8,), F8)
VIEW = structural(Kind.VIEW, "view", F8)


def frame_of(text: str, filename: str) -> FrameType:
    """The frame of a function in program text, which still runs."""
    names: dict[str, Any] = {"sys": sys}
    exec(compile(text, filename, "exec"), names)
    return names["found"]  # type: ignore[no-any-return]


def test_a_place_is_the_innermost_line_of_the_program() -> None:
    places = Places(lambda file: file in ("a.py", "b.py"))
    frame = frame_of("\n\nfound = sys._getframe()\n", "a.py")
    number = places.find(frame)
    assert places.known[number] == ("a.py", 3)
    assert places.find(frame) == number
    assert places.look(frame) == (number, PYTHON)
    library = frame_of("found = sys._getframe()\n", "library.py")
    assert places.find(library) == NOWHERE  # nobody of the program has called it


def test_equal_lines_of_two_files_are_two_places() -> None:
    places = Places(lambda file: True)
    one, two = (frame_of("found = sys._getframe()\n", name) for name in ("a.py", "b.py"))
    assert places.find(one) != places.find(two)
    assert {places.known[places.find(each)] for each in (one, two)} == {("a.py", 1), ("b.py", 1)}


def test_lines_of_long_functions_are_pythons() -> None:
    rounds = 3 * places_of_frames.MOST_STEPS
    text = "found = []\n" + "".join(
        [f"found.append((find(sys._getframe()),\n    {n}, sys._getframe().f_lineno))\n"
         for n in range(rounds)]
    )  # fmt: skip
    places = Places(lambda file: file == "long.py")
    names: dict[str, Any] = {"sys": sys, "find": places.find}
    exec(compile(text, "long.py", "exec"), names)
    found = names["found"]
    assert [places.known[number] for number, _, _ in found] == [
        ("long.py", 2 * n + 2) for n in range(rounds)
    ]
    assert len(found) == rounds


def test_loops_over_elements_take_time() -> None:
    lines = """
import numpy as np
for k in range(9):
    for i in range(5):
        y[i] = x[i - 1]
def f(x):
    try:
        pass
    finally:
        for row in rows:
            total += np.hypot(row, 1).max() - np.min(row)
for k in range(9):
    total += x.sum(axis=k)
for k in range(9):
    total += x[0]
""".splitlines()
    taken = {5: 10.0, 11: 3.0, 15: 10.0}

    def host_ns(first: int, last: int) -> float:
        return sum([taken.get(number, 0.0) for number in range(first, last + 1)])

    found = list(source.loops_over_elements(lines, host_ns, 2.0))
    assert [(each.first, each.last, each.folds) for each in found] == [
        (4, 5, []), (10, 11, ["max", "min"])
    ]  # fmt: skip
    found = list(source.loops_over_elements(lines, host_ns, 5.0))
    assert [each.first for each in found] == [4]
    assert list(source.loops_over_elements(["for"], host_ns, 0.0)) == []


def test_loops_say_what_they_take_of_arrays() -> None:
    lines = """
for i in range(n):
    for j in range(n):
        d[i, j] = np.hypot(a[i] - a[j]).sum()
for i in range(n):
    out[i] = a[i : i + 3].max()
for i in range(n):
    out[i] = a[2 : n - 1].max() + b[:i]
""".splitlines()
    found = list(source.loops_over_elements(lines, lambda first, last: 1.0, 0.5))
    assert [(each.first, each.is_nested, each.has_windows) for each in found] == [
        (2, True, False), (5, False, True), (7, False, False)
    ]  # fmt: skip


def test_loops_of_calls_know_what_rounds_hand_on() -> None:
    lines = """
import numpy as np
def f(x):
    return g(x)
def g(x):
    return np.sin(x)
for p in range(9):
    z = rng.normal(size=3)
    s = np.cumsum(z)
    found.append(s.mean())
    total += s.max()
while t < 9:
    for k in range(3):
        x = f(x) + y
    t += 1
for word in words:
    counts[word] = len(word.split())
for p in range(9):
    a[0] = 1
    b = a.sum()
""".splitlines()
    found = list(source.loops_of_calls(lines, lambda first, last: 1.0, 0.5))
    carried = [(each.first, each.carried) for each in found]
    assert carried == [(7, []), (12, ["t", "x"]), (18, ["a"])]
    assert found[1].spans == [(12, 15), (3, 4), (5, 6)]


def test_lines_that_store_to_elements_are_known() -> None:
    lines = "x[m] = y[m]|z = y[m]|x[m] += (|    1)|x += y[m]|for a in b:|  a[m] = 0".split("|")
    assert source.lines_that_store(lines) == {1, 3, 4, 7}


def test_whole_powers_are_sought_at_the_lines_asked() -> None:
    lines = """
y = x ** 3
if (a + b) ** 4 > 1:
    z = np.power(y, 5) + y ** 2
    w = y ** 9
with f(x ** 3) as g: h = x ** 6
""".splitlines()
    assert list(source.whole_powers(lines, {2, 3, 4, 5})) == [
        ("x", 3, 2), ("x", 4, 3), ("y", 5, 4)
    ]  # fmt: skip
    assert list(source.whole_powers(lines, {4})) == [("y", 5, 4)]
    assert list(source.whole_powers(lines, {6})) == [("x", 3, 6)]
    assert list(source.whole_powers(lines, set())) == []


def test_work_is_shared_by_operations_and_elements() -> None:
    items = [LEAF, (SINE, (4,), None, 0), (ADD, (4,), None, 1, 1), (VIEW, (2,), (0, (1,)), 2)]
    found = shares([1, 2, 3], [5, 6, 7, 8], items)
    assert set(found) == {6, 7}  # a view is no work
    assert found[6] / found[7] == SINE.weight / ADD.weight
    assert sum(found.values()) == 1
    assert shares([3], [5, 6, 7, 8], items) == {8: 1.0}
    assert shares([], [], items) == {}


def test_what_no_line_has_recorded_belongs_to_its_reader() -> None:
    items = [LEAF, (SINE, (4,), None, 0), (SINE, (4,), None, 1), (ADD, (4,), None, 2, 0)]
    assert with_readers([NOWHERE, NOWHERE, 2, 3], items) == [3, 2, 2, 3]


def test_two_short_stretches_become_the_longer_one() -> None:
    stretches = [[0, 10, 1, "wait"], [10, 12, 2, "copy"], [12, 13, 3, "plan"], [13, 30, 4, "wait"]]
    assert sampler._halved(stretches) == [[0, 12, 1, "wait"], [12, 30, 4, "wait"]]


def test_waits_that_the_sampler_has_slept_through_count(monkeypatch: Any) -> None:
    """The thread is woken when the device is done: what was waited is known, and is no Python."""
    places = Places(lambda file: file == "waiter.py")
    looks = sampler.Sampler(places, lambda now_ns: None, lambda: 5)
    waited = [0]
    monkeypatch.setattr(sampler, "_waited_ns", lambda: waited[0])
    looks.start(threading.get_ident())
    looks.stop()
    looks.elapsed.clear()
    looks.stretches.clear()
    looks._last_ns = time.perf_counter_ns() - 50_000_000
    waited[0] = 30_000_000
    looks._look()
    assert looks.elapsed[5, WAIT] == 30_000_000
    others = sum([elapsed for (_, state), elapsed in looks.elapsed.items() if state != WAIT])
    assert others >= 20_000_000
    assert looks.stretches[0][3] == WAIT
    looks._look()
    assert looks.elapsed[5, WAIT] == 30_000_000  # once


def test_the_sampler_sees_the_line_that_sleeps() -> None:
    places = Places(lambda file: file == "sleeper.py")
    looks = sampler.Sampler(places, lambda now_ns: None, lambda: NOWHERE)
    looks.start(threading.get_ident())
    exec(compile("\ntime.sleep(0.3)\n", "sleeper.py", "exec"), {"time": time})
    looks.stop()
    lines = {places.known[number] for number, _ in looks.elapsed if number != NOWHERE}
    assert lines == {("sleeper.py", 2)}
    assert all(state in STATES for _, state in looks.elapsed)
    ends = [stretch[:2] for stretch in looks.stretches]
    assert all(start <= end for start, end in ends)
    assert all(one[1] == two[0] for one, two in pairwise(ends))


def test_a_file_is_tried_and_not_left_behind(tmp_path: Any) -> None:
    assert trouble_with(str(tmp_path / "page.html")) == ""
    assert list(tmp_path.iterdir()) == []
    kept = tmp_path / "old.html"
    kept.write_text("old", encoding="utf-8")
    assert trouble_with(str(kept)) == ""
    assert kept.read_text(encoding="utf-8") == "old"
    assert trouble_with(str(tmp_path)) != ""
    assert trouble_with(str(tmp_path / "none" / "page.html")) != ""
