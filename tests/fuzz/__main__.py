"""``python -m tests.fuzz``: as many random programs as asked for, each under NumPy and clfuse.

    python -m tests.fuzz --programs 100000        # seeds 0, 1, 2 ...
    python -m tests.fuzz --seed 123               # this one program again
    python -m tests.fuzz --seed 123 --show        # print it, run nothing
    python -m tests.fuzz --texts                  # programs of tests.fuzz.texts
    python -m tests.fuzz --joined                 # expressions of tests.fuzz.joined
    python -m tests.fuzz --loops                  # loops of tests.fuzz.loops
    python -m tests.fuzz --calls                  # calls of tests.fuzz.calls
"""

from __future__ import annotations

import argparse
import faulthandler
import importlib
import os
import sys
import time
from collections.abc import Sequence

from tests.fuzz import call_runner, calls, joined, loops, text_runner, texts
from tests.fuzz.bounds import Unbounded
from tests.fuzz.command_line import parser_of_seeds, seeds_of
from tests.fuzz.generate import generate
from tests.fuzz.runner import check, report
from tests.fuzz.shrink import SECONDS, shrink


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; 1 if any program differed."""
    parser = parser_of_seeds("tests.fuzz", __doc__, "programs", 500)
    parser.add_argument("--show", action="store_true", help="print the program, do not run it")
    parser.add_argument("--failures", type=int, default=10, help="stop after so many (default 10)")
    parser.add_argument("--shrink", type=float, default=SECONDS, metavar="SECONDS",
                        help=f"time to make a failure small (default {SECONDS:.0f}, 0: leave it)")
    parser.add_argument("--module", default=os.environ.get("CLFUSE_TEST_MODULE", "clfuse"),
                        help="the module under test")
    parser.add_argument("--trace", action="store_true",
                        help="print each seed before it runs: a crash shows which one it was")
    parser.add_argument("--texts", action="store_true",
                        help="loops, functions, conditions and looks; each runs twice")
    parser.add_argument("--joined", action="store_true",
                        help="expressions that join rows and fold them")
    parser.add_argument("--loops", action="store_true",
                        help="loops of many rounds, with clfuse's settings as they are")
    parser.add_argument("--calls", action="store_true",
                        help="single calls of every function, with all kinds of arguments")
    options = parser.parse_args(arguments)
    seeds = seeds_of(options)
    if options.show:
        for seed in seeds:
            print(joined.Expression(seed).text if options.joined
                  else loops.Loop(seed).text() if options.loops
                  else calls.generate(seed).script() if options.calls
                  else text_runner.script(texts.generate(seed)) if options.texts
                  else generate(seed).script(options.module))
        return 0
    faulthandler.enable()
    if options.joined:
        return 1 if run_joined(seeds, options) else 0
    if options.texts:
        return 1 if run_texts(seeds, options) else 0
    if options.loops:
        return 1 if run_loops(seeds, options) else 0
    if options.calls:
        return 1 if run_calls(seeds, options) else 0
    return 1 if run(seeds, options) else 0


def run_calls(seeds: range, options: argparse.Namespace) -> int:
    """How many calls differed."""
    xp = importlib.import_module(options.module)
    failures = 0
    for done, seed in enumerate(seeds, 1):
        if options.trace:
            print(f"seed {seed}", file=sys.stderr, flush=True)
        call = calls.generate(seed)
        difference = call_runner.check(call, xp)
        if difference is not None:
            failures += 1
            call, difference = call_runner.shrink(call, difference, xp)
            print(f"\n=== {call_runner.report(seed, call, difference)}", flush=True)
            if failures >= options.failures:
                break
        if done % 5000 == 0 or done == len(seeds):
            print(f"{done} of {len(seeds)} calls, {failures} differ", file=sys.stderr, flush=True)
    return failures


def run_texts(seeds: range, options: argparse.Namespace) -> int:
    """How many texts differed."""
    xp = importlib.import_module(options.module)
    failures = 0
    for seed in seeds:
        blocks = texts.generate(seed)
        difference = text_runner.check_twice(blocks, xp, seed)
        if difference is not None:
            failures += 1
            small = text_runner.shrink(
                blocks, lambda b, s=seed: text_runner.check_twice(b, xp, s) is not None)
            print(f"\n=== seed {seed}, {difference}\n\n{text_runner.script(small)}", flush=True)
            if failures >= options.failures:
                break
    print(f"{len(seeds)} texts, {failures} differ", file=sys.stderr)
    return failures


def run_joined(seeds: range, options: argparse.Namespace) -> int:
    """How many expressions differed."""
    xp = importlib.import_module(options.module)
    failures = 0
    for seed in seeds:
        expression = joined.Expression(seed)
        problem = joined.check(expression, xp)
        if problem is not None:
            failures += 1
            print(f"\n=== {joined.report(seed, expression, problem)}", flush=True)
            if failures >= options.failures:
                break
    print(f"{len(seeds)} expressions, {failures} differ", file=sys.stderr)
    return failures


def run_loops(seeds: range, options: argparse.Namespace) -> int:
    """How many loops differed."""
    xp = importlib.import_module(options.module)
    failures = 0
    for done, seed in enumerate(seeds, 1):
        if options.trace:
            print(f"seed {seed}", file=sys.stderr, flush=True)
        loop = loops.Loop(seed)
        problem = loops.check(loop, xp)
        if problem:
            failures += 1
            if options.shrink:
                loops.shrink(loop, xp)
            print(f"\n=== {loops.report(loop, problem)}", flush=True)
            if failures >= options.failures:
                break
        if done % 100 == 0 or done == len(seeds):
            print(f"{done} of {len(seeds)} loops, {failures} differ", file=sys.stderr, flush=True)
    return failures


def run(seeds: range, options: argparse.Namespace) -> int:
    """How many programs differed."""
    xp = importlib.import_module(options.module)
    failures, started = 0, time.monotonic()
    for done, seed in enumerate(seeds, 1):
        if options.trace:
            print(f"seed {seed}", file=sys.stderr, flush=True)
        tested = generate(seed)
        try:
            difference = check(tested, xp)
        except Unbounded as reason:  # a traced function that writes to its arguments
            print(f"seed {seed} is not compared: {reason}", file=sys.stderr, flush=True)
            continue
        if difference is not None:
            failures += 1
            if options.shrink:
                tested, difference = shrink(tested, difference, lambda p: check(p, xp),
                                            options.shrink)
            print(f"\n=== {report(tested, difference)}", flush=True)
            if failures >= options.failures:
                break
        if sys.stderr.isatty() or done % 500 == 0 or done == len(seeds):
            rate = done / (time.monotonic() - started)
            print(f"\r{done} of {len(seeds)} programs, {failures} differ, {rate:.1f} programs/s",
                  end="" if sys.stderr.isatty() else "\n", file=sys.stderr, flush=True)
    return failures


if __name__ == "__main__":
    sys.exit(main())
