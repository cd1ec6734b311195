"""Random programs that end early, many of them: ``python -m tests.fuzz.ended_early``.
`clfuse.tools.check.ended_early` says what is done to them."""

from __future__ import annotations

import argparse
import importlib
import sys

from clfuse.tools.check.ended_early import WAYS, run


def main() -> int:
    """Run the command line; 1 if a value was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.ended_early", description=__doc__)
    parser.add_argument("--programs", type=int, default=100, help="how many (default 100)")
    parser.add_argument("--start", type=int, default=0, help="the first seed (default 0)")
    parser.add_argument("--trials", type=int, default=20, help="of each program and way")
    parser.add_argument("--way", choices=[way.__name__ for way in WAYS], help="only this one")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="at most about")
    options = parser.parse_args()
    ways = [way for way in WAYS if options.way in (None, way.__name__)]
    seeds = range(options.start, options.start + options.programs)
    count, problems = run(importlib.import_module("clfuse"), seeds, options.trials, ways,
                          options.seconds)
    for text in problems[:10]:
        print(text)
    print(f"{count} trials, {len(problems)} wrong")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
