"""What ``python -m clfuse run`` says beside the program: that nothing of it used clfuse and why,
that seeds give other numbers than NumPy's, and what ``--stats``, ``--explain`` and ``--profile``
ask for. All of it goes to the standard error; what ``--report`` asks for goes to a file.
"""

from __future__ import annotations

import sys
import time
import types
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from .substitution import Substitution, project_folders

if TYPE_CHECKING:
    from .report.writing import Report

__all__ = ["Summary"]

MOST_NAMED = 5
"""Packages that are named where nothing used clfuse."""


def say(text: str) -> None:
    print(f"clfuse run: {text}", file=sys.stderr)


class Summary:
    """A context in which a program runs.

    wanted (set of str): ``stats``, ``explain`` and ``profile``, where they are asked for.
    packages (list of str): installed packages that get clfuse, too.
    report (str): the file that gets a report of the run; empty where none is asked for.
    """

    def __init__(self) -> None:
        self.wanted: set[str] = set()
        self.packages: list[str] = []
        self.report = ""
        self._report_of_run: Report | None = None
        self._substitution: Substitution | None = None
        self._stack = ExitStack()
        self._profile: Any = None
        self._start = 0.0

    def begin(self, folder: str, script: str, text: str | None = None) -> Substitution:
        """Give clfuse from here on to the program in `folder`, and to its project.

        `script` is its file, or stands for it where it has none: then `text` is its source.
        """
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
        if self.report:
            from .report.writing import Report

            texts = {} if text is None else {script: text}
            command = " ".join(sys.argv if text is None else [script, *sys.argv[1:]])
            self._report_of_run = Report(
                self.report, command, script, self._substitution.is_users, texts
            )
            self._report_of_run.start()
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
        if self._report_of_run is not None:
            self._report_of_run.stop()
        self._stack.close()
        if kind is None or (isinstance(error, SystemExit) and not error.code):
            self._say_unused()
        if self.wanted:
            self._report(elapsed)
        if self._report_of_run is not None:
            self._write_report(self._report_of_run, error)

    def _write_report(self, report: Report, error: BaseException | None) -> None:
        """Write the report; what goes wrong is said, and is not how the program ends."""
        from .report.writing import outcome_of

        unused = ""
        assert self._substitution is not None
        if report.is_silent and not self._substitution.served:
            unused = self._why_unused() or (
                "nothing of this program used clfuse: no module of its project imports NumPy"
            )
        try:
            report.write(outcome_of(error), unused[:1].upper() + unused[1:])
        except OSError as problem:
            say(f"--report {report.path}: {problem.strerror or problem}")
        except Exception:  # noqa: BLE001 (the program's own outcome counts, whatever the report's)
            import traceback

            say(f"the report could not be made, by a fault of clfuse's:\n{traceback.format_exc()}")
        else:
            say(f"the report is in {report.path}")

    def _why_unused(self) -> str:
        """Why clfuse was not used, where the program or what it imports has used NumPy; or
        nothing."""
        assert self._substitution is not None
        refused = [name for name in self._substitution.refused if name in sys.modules]
        if self._substitution.served or not refused:
            return ""
        names = ", ".join(refused[:MOST_NAMED]) + (", ..." if len(refused) > MOST_NAMED else "")
        return (
            "nothing of this program used clfuse: no module of its project imports NumPy;"
            f" {names} did, and kept it (--include PACKAGE gives clfuse to an installed package)"
        )

    def _say_unused(self) -> None:
        """Say that clfuse was not used, where the program or what it imports has used NumPy."""
        if why := self._why_unused():
            say(why)

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
