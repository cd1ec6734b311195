"""Random programs that end early, many of them: ``python -m tests.fuzz.ended_early``.
`clfuse.tools.check.ended_early` says what is done to them."""

from __future__ import annotations

import importlib
import sys

from clfuse.tools.check.ended_early import WAYS, run
from tests.fuzz.command_line import ended, parser_of_seeds, seeds_of


def main() -> int:
    """Run the command line; 1 if a value was wrong."""
    parser = parser_of_seeds("tests.fuzz.ended_early", __doc__, "programs", 100)
    parser.add_argument("--trials", type=int, default=20, help="of each program and way")
    parser.add_argument("--way", choices=[way.__name__ for way in WAYS], help="only this one")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="at most about")
    options = parser.parse_args()
    ways = [way for way in WAYS if options.way in (None, way.__name__)]
    count, problems = run(importlib.import_module("clfuse"), seeds_of(options), options.trials,
                          ways, options.seconds)
    return ended(problems, 10, f"{count} trials")


if __name__ == "__main__":
    sys.exit(main())
