"""What the fuzzers' command lines have in common: which seeds they run, and what they say."""

from __future__ import annotations

import argparse
from collections.abc import Sequence


def parser_of_seeds(
    module: str, description: str | None, what: str, count: int
) -> argparse.ArgumentParser:
    """A parser with the options that choose seeds: `count` of what is tested, if none is given."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=description,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(f"--{what}", dest="count", type=int, default=count, metavar="N",
                        help=f"how many (default {count})")
    parser.add_argument("--start", type=int, default=0, help="the first seed (default 0)")
    parser.add_argument("--seed", type=int, help="only this one")
    return parser


def seeds_of(options: argparse.Namespace) -> range:
    """The seeds that the options of `parser_of_seeds` choose."""
    if options.seed is not None:
        return range(options.seed, options.seed + 1)
    return range(options.start, options.start + options.count)


def ended(problems: Sequence[str], most: int, tested: str) -> int:
    """Print the first problems and how many there are of what was tested; the exit status."""
    for text in problems[:most]:
        print(text)
    print(f"{tested}, {len(problems)} wrong")
    return 1 if problems else 0
