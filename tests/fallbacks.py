"""Writes the list of what falls back to NumPy on a device with memory of its own.

    python -m tests.fallbacks          # after a change of what has a kernel

Each call of ``clfuse bench functions``, and each distribution of a generator, is made on the
simulated H100. What `clfuse.stats` counts as a fallback goes into the table in the guide
(``limits.md``), with the reason (`REASONS`). `tests/device/test_fallback_page.py` compares both.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

PAGE: Final = Path(__file__).parents[1] / "clfuse" / "guide" / "limits.md"
BEGIN: Final = "<!-- listed by python -m tests.fallbacks -->"
END: Final = "<!-- end of the list -->"

DEVICE: Final = "h100"
"""The simulated device."""

RECORDED: Final = {"CLFUSE_COMPILED": "off", "CLFUSE_HOST_US": "10000000"}
"""All is recorded, as where arrays are large; then NumPy computes it, since a list of what falls
back needs no values of kernels: building hundreds of them took most of the time."""

SIZE: Final = 1024
"""Elements of the arguments: more than small arrays have, which lie on the host by themselves."""

DISTRIBUTIONS: Final = """
choice(x,9)|choice(x,9,p=x/x.sum())|choice(x,9,False,p=x/x.sum())|gumbel(size=n)|laplace(size=n)
logistic(size=n)|lognormal(size=n)|noncentral_chisquare(3.,1.,n)|noncentral_f(3.,2.,1.,n)
pareto(3.,n)|permuted(x)|power(3.,n)|rayleigh(1.,n)|shuffle(w)|standard_cauchy(n)
standard_exponential(n)|standard_gamma(2.,n)|triangular(0.,1.,2.,n)|weibull(3.,n)
multivariate_normal([0.,0.],[[1.,0.],[0.,1.]],n)
"""
"""Methods of `numpy.random.Generator` that ``bench functions`` has not."""

OTHERS: Final = """
nested_iters(m,[[0],[1]])|convolve(x,y)|correlate(x,x[:99])|polymul(x,y)|power.accumulate(x)
add.reduceat(x,[0,9])|add.at(w.astype('f2'),i,1.)|sort(c)|argsort(c)|partition(c,5)
"""
"""Calls with arguments that `clfuse bench functions` has not."""

REASONS: Final = {
    "linalg": (
        "Factorizations, and what needs one",
        "LAPACK goes column by column, each step on the result of the last one, and its errors"
        " depend on the values",
    ),
    "ufuncs": (
        "Scans of ufuncs that are no sums, products, quotients, extremes or bits",
        "each step needs the rounded result of the last one",
    ),
    "iterators": ("NumPy's own iterators", "the loop is Python's, over NumPy's buffers"),
}
"""Kind of operations -> what they are, and why no kernel does them."""

KINDS: Final = {"det": "linalg", "slogdet": "linalg", "nested_iters": "iterators"}
"""Operation -> its kind, where its name does not say so."""


def expressions() -> list[str]:
    """The calls that are made."""
    from clfuse.tools.bench.functions import calls

    drawn, others = (
        [each for line in text.strip().splitlines() for each in line.split("|")]
        for text in (DISTRIBUTIONS, OTHERS)
    )
    return [*calls(), *[f"g.{each}" for each in drawn], *others]


def _is_known(call: str, space: dict[str, Any]) -> bool:
    """Whether the installed NumPy has what a call names."""
    try:
        eval(call, space)
    except AttributeError:
        return False
    return True


def found() -> dict[str, list[str]]:
    """Call -> the operations of it that NumPy does on the host, on the device of this process."""
    import numpy

    import clfuse
    from clfuse import events
    from clfuse.tools.bench.functions import arguments

    class Names:
        """A listener that keeps the names of fallbacks."""

        def __init__(self) -> None:
            self.names: list[str] = []

        def fell_back(self, name: str, reason: str) -> None:
            self.names.append(name)

        def __getattr__(self, name: str) -> Any:
            return lambda *args: None

    given, theirs = arguments(clfuse, SIZE), arguments(numpy, SIZE)
    names: Any = Names()
    table: dict[str, list[str]] = {}
    events.listeners.append(names)
    try:
        for each in expressions():
            names.names.clear()
            call = each if each.startswith("g.") else f"np.{each}"
            try:
                eval(call, {"np": clfuse, **given})
            except AttributeError:
                if _is_known(call, {"np": numpy, **theirs}):
                    raise
                continue  # newer than this NumPy
            table[each] = list(dict.fromkeys(names.names))
    finally:
        events.listeners.remove(names)
    return table


def on_simulated_device() -> dict[str, list[str]]:
    """As `found`, in a process of its own on the simulated device."""
    result = subprocess.run(
        [sys.executable, "-m", "tests.fallbacks", "--found"], cwd=PAGE.parents[2],
        env={**os.environ, "CLFUSE_SIMULATE": DEVICE, "CLFUSE_FALLBACK": "allow", **RECORDED},
        stdout=subprocess.PIPE, check=True, timeout=600, text=True,
    )  # fmt: skip
    table: dict[str, list[str]] = json.loads(result.stdout.splitlines()[-1])
    return table


def kind_of(operation: str) -> str:
    """The row of `REASONS` that an operation belongs to; an error where nobody has said why it
    falls back."""
    if operation.endswith(".accumulate"):
        return "ufuncs"
    first = operation.partition(".")[0]
    return first if first in REASONS else KINDS[operation]


def shown(operation: str) -> str:
    """An operation as the list calls it: the methods of both kinds of generators are one."""
    return operation.replace("random.Generator.", "").replace("random.RandomState.", "")


def rows(table: dict[str, list[str]]) -> Iterator[str]:
    """The list, a line a kind."""
    fallen = {operation for operations in table.values() for operation in operations}
    kinds = {operation: kind_of(operation) for operation in fallen}
    for kind, (what, why) in REASONS.items():
        names = sorted({shown(operation) for operation in fallen if kinds[operation] == kind})
        if names:
            yield f"| {what} | {', '.join([f'`{name}`' for name in names])} | {why} |"


def listed(table: dict[str, list[str]]) -> str:
    """The list, as it stands between its two marks in the page."""
    head = ["| what | operations | why no kernel does it |", "|---|---|---|"]
    return "\n".join([BEGIN, "", *head, *rows(table), "", END])


def committed() -> str:
    """What stands in the page."""
    text = PAGE.read_text(encoding="utf-8")
    return text[text.index(BEGIN) : text.index(END) + len(END)]


def main(arguments: list[str]) -> None:
    """Put the list into the page."""
    if arguments == ["--found"]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            print(json.dumps(found()))
        return
    text = PAGE.read_text(encoding="utf-8")
    table = on_simulated_device()
    PAGE.write_text(text.replace(committed(), listed(table)), encoding="utf-8")
    fallen = sum([bool(operations) for operations in table.values()])
    print(f"{PAGE.name} has what falls back in {fallen} of {len(table)} calls", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
