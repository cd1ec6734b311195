"""What ``python -m clfuse run`` says beside the program: that nothing of it used clfuse and why,
that seeds give other numbers than NumPy's, and what ``--stats``, ``--explain`` and ``--profile``
ask for. All of it goes to the standard error.
"""

from __future__ import annotations

import sys
import time
import types
from contextlib import ExitStack
from typing import Any

from .substitution import Substitution, project_folders

__all__ = ["Summary"]

MOST_NAMED = 5
"""Packages that are named where nothing used clfuse."""


def say(text: str) -> None:
    print(f"clfuse run: {text}", file=sys.stderr)


class Summary:
    """A context in which a program runs.

    Attributes
    ----------
    wanted : set of str
        ``stats``, ``explain`` and ``profile``, where they are asked for.
    packages : list of str
        Installed packages that get clfuse, too.
    """

    def __init__(self) -> None:
        self.wanted: set[str] = set()
        self.packages: list[str] = []
        self._substitution: Substitution | None = None
        self._stack = ExitStack()
        self._profile: Any = None
        self._start = 0.0

    def begin(self, folder: str) -> Substitution:
        """Give clfuse from here on to the program in `folder`, and to its project."""
        from clfuse import counters

        if "explain" in self.wanted:
            from clfuse.engine import debug_output

            debug_output.show_plans()
        if "profile" in self.wanted:
            from clfuse.control import profile

            self._profile = self._stack.enter_context(profile())
        counters.when_seeded.append(_warn_of_seed)
        self._start = time.perf_counter()
        self._substitution = Substitution(
            project_folders(folder), main=True, packages=self.packages
        )
        self._substitution.install()
        return self._substitution

    def __enter__(self) -> Summary:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: types.TracebackType | None,
    ) -> None:
        if self._substitution is None:
            return  # there is no such program
        elapsed = time.perf_counter() - self._start
        self._stack.close()
        if kind is None or (isinstance(error, SystemExit) and not error.code):
            self._say_unused()
        if self.wanted:
            self._report(elapsed)

    def _say_unused(self) -> None:
        """Say that clfuse was not used, where the program or what it imports has used NumPy."""
        assert self._substitution is not None
        refused = [name for name in self._substitution.refused if name in sys.modules]
        if self._substitution.served or not refused:
            return
        names = ", ".join(refused[:MOST_NAMED]) + (", ..." if len(refused) > MOST_NAMED else "")
        say(
            "nothing of this program used clfuse: no module of its project imports NumPy;"
            f" {names} did, and kept it (--include PACKAGE gives clfuse to an installed package)"
        )

    def _report(self, elapsed: float) -> None:
        from clfuse.control import stats

        found = stats()
        if not found["kernels_launched"]:
            say(
                "no kernel ran: NumPy computed what there was, as is quicker for small arrays"
                " (CLFUSE_HOST_US) and until an expression has earned a kernel"
                " (CLFUSE_BUILD_AFTER_MS)"
            )
        if self._profile is not None and self._profile.kernels:
            say(f"kernels\n{self._profile}")
        if "stats" in self.wanted:
            rows = [f"  {name:20}{value:16,}" for name, value in found.items() if value]
            say("\n".join([f"counters after {elapsed:.2f} s", *rows]))


def _warn_of_seed() -> None:
    from clfuse import counters
    from clfuse.errors import user_place

    counters.when_seeded.remove(_warn_of_seed)
    say(
        f"{user_place()} sets a seed; the numbers are clfuse's own, not those of NumPy for it"
        " (--exact-random gives NumPy's, more slowly)"
    )
