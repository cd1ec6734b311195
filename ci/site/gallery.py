"""The gallery: each program of ``clfuse/guide/gallery`` runs here under NumPy and under clfuse.

    python ci/site/gallery.py PROGRAM FOLDER

measures one program in a process of its own, and leaves its picture and its figures in a folder.
`write` does that with each of them, has ``python -m clfuse report`` make its report, and writes the
pages. What it has measured is kept until the program or clfuse changes.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parent.parent.parent
PROGRAMS = TOP / "clfuse" / "guide" / "gallery"
REPETITIONS_S = 0.6
"""Both take turns for this long."""
WARM_RUNS = 3
"""Runs after which kernels that were earned are built."""
SOURCES = (".py", ".pyx", ".pxi", ".cl", ".mako")
"""Files that a run depends on."""
LONGEST_S = 120
"""No program takes so long: one that does hangs."""


def program_paths() -> list[Path]:
    """The programs, by name."""
    return sorted(PROGRAMS.glob("*.py"))


def docstring(path: Path) -> tuple[str, str]:
    """The first sentence of a program, and the rest of what it says of itself."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    first, _, rest = text.partition("\n\n")
    return " ".join(first.split()), rest.strip()


def title_of(path: Path) -> str:
    """What a page is called."""
    words = path.stem.replace("_", " ")
    return SPELLED.get(words, words.capitalize())


SPELLED = {
    "fft optics": "FFT optics", "gray scott": "Gray-Scott", "kmeans": "k-means", "nbody": "n-body",
    "ising": "Ising model", "kalman": "Kalman filters", "lattice boltzmann": "Lattice Boltzmann",
    "life": "Game of life", "mandelbrot": "Mandelbrot set", "monte carlo": "Monte Carlo",
    "optics": "FFT optics", "wave": "Wave equation",
    "neural network": "Neural network from scratch",
}  # fmt: skip
"""Words of a file's name -> a page's name, where that is not the same with a capital."""


# -- one program -----------------------------------------------------------------------------------


def measure(path: Path, folder: Path, small: bool) -> None:
    """Run a program under both libraries; leave its picture and its figures in a folder.

    Raises
    ------
    SystemExit
        The results differ.
    """
    import numpy

    import clfuse
    from clfuse.tools.demo import runner

    runner.BUDGET_S, runner.MOST_WARM_RUNS = REPETITIONS_S, WARM_RUNS
    # The compiler is waited for: later runs have their kernels, however busy the machine is.
    with clfuse.config.override(background="off"):
        found = runner.measure(path, quick=small, folder=folder)
    if not found.agrees:
        sys.exit(f"{path.name}: clfuse's results differ from NumPy's by {found.error:.2g}")
    figures = {
        "title": found.title,
        "numpy_s": found.numpy_s,
        "first_s": found.first_s,
        "steady_s": found.steady_s,
        "kernels": found.kernels,
        "picture": found.picture.name if found.picture else "",
        "device": clfuse.get_device().name,
        "platform": clfuse.get_device().platform_name,
        "numpy": numpy.__version__,
        "cores": len(os.sched_getaffinity(0)),
    }
    (folder / f"{path.stem}.json").write_text(json.dumps(figures), encoding="utf-8")


def run(arguments: list[str], folder: Path) -> None:
    """Run Python in a folder.

    Raises
    ------
    RuntimeError
        It fails; with what it said.
    """
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder, capture_output=True, text=True, timeout=LONGEST_S,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"{' '.join(arguments)} failed:\n{done.stdout}{done.stderr}")


# -- the pages -------------------------------------------------------------------------------------


def milliseconds(seconds: float) -> str:
    """A time in a table."""
    return f"{1e3 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.2f} s"


def page_of(path: Path, figures: Mapping[str, Any]) -> str:
    """A program's page, in Markdown."""
    first, rest = docstring(path)
    lines = [f"# {title_of(path)}", "", first, ""]
    lines += [rest, ""] if rest else []
    lines += [f"![{title_of(path)}]({figures['picture']}){{.result}}", ""]
    lines += [
        f"| {figures['title']} | |", "|---|--:|",
        f"| NumPy | {milliseconds(figures['numpy_s'])} |",
        f"| clfuse, first run in a process | {milliseconds(figures['first_s'])} |",
        f"| clfuse, later runs | {milliseconds(figures['steady_s'])} |",
        f"| NumPy's time over clfuse's | {figures['numpy_s'] / figures['steady_s']:.2g} |",
        f"| kernels launched in a run | {figures['kernels']:,} |",
        "",
    ]  # fmt: skip
    if not figures["kernels"]:
        lines += [
            "No kernel was launched: NumPy computed at the call, "
            "[because that is sooner](../laziness.md#who-computes-small-programs-are-numpys).", "",
        ]  # fmt: skip
    lines += [
        f'<a href="../reports/{path.stem}.html">The report of a run</a>: time by line, what fused, '
        "what NumPy computed and why, and advice.", "",
        "## The program", "",
        "```console",
        f"$ python {path.name}                       # NumPy",
        f"$ python -m clfuse run {path.name}         # clfuse; nothing in it changes",
        "```", "",
        f"```{{literalinclude}} programs/{path.name}", ":language: python", "```", "",
    ]  # fmt: skip
    return "\n".join(lines)


def index_of(found: Mapping[Path, Mapping[str, Any]], small: bool) -> str:
    """The page of all programs, in Markdown."""
    one = next(iter(found.values()))
    lines = [
        "# Gallery", "",
        "Programs that people know, each a plain NumPy script that runs unchanged under both "
        "libraries with the same results. The times were taken when this site was made, on "
        f"{one['cores']} cores, with NumPy {one['numpy']} and clfuse on {one['device']} "
        f"({one['platform']}): medians of some runs by turns, other work on the machine included.",
        "",
    ]  # fmt: skip
    if small:
        lines += ["```{note}", "This site was made with small sizes, to check that it can be made: "
                  "its times say nothing.", "```", ""]  # fmt: skip
    lines.append('<ul class="gallery">')
    for path, figures in found.items():
        both = milliseconds(figures["numpy_s"]), milliseconds(figures["steady_s"])
        times = f"NumPy {both[0]}, clfuse {both[1]}"
        lines.append(
            f'<li><a href="{path.stem}.html"><img src="../_images/{figures["picture"]}" alt="">'
            f"<span>{title_of(path)}<small>{times}</small></span></a></li>"
        )
    lines += ["</ul>", "", "| program | NumPy | clfuse, first | clfuse, later | ratio | kernels |"]
    lines.append("|---|--:|--:|--:|--:|--:|")
    for path, figures in found.items():
        cells = [
            f"[{figures['title']}]({path.stem}.md)", milliseconds(figures["numpy_s"]),
            milliseconds(figures["first_s"]), milliseconds(figures["steady_s"]),
            f"{figures['numpy_s'] / figures['steady_s']:.2g}", f"{figures['kernels']:,}",
        ]  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    lines += [
        "",
        "A ratio above 1: clfuse is faster. *First* has planning and compiling in it, of kernels "
        "that no earlier process has left on the disk; the compiler is waited for "
        "(`CLFUSE_BACKGROUND=off`). Loops on some ten thousand elements gain "
        "[little or nothing](../limits.md) on a CPU.", "",
        "```{toctree}", ":hidden:", "", *[path.stem for path in found], "```", "",
    ]  # fmt: skip
    return "\n".join(lines)


def key_of(path: Path, small: bool) -> str:
    """A digest of what a run depends on: the program, clfuse's sources, its size, the settings."""
    import numpy

    import clfuse

    sources = [
        path, Path(__file__),
        *sorted(file for folder in ("clfuse", "kernels") for file in (TOP / folder).rglob("*")
                if file.suffix in SOURCES and PROGRAMS not in file.parents),
    ]  # fmt: skip
    digest = hashlib.sha256(f"{small} {numpy.__version__} {clfuse.get_device()!r}".encode())
    for name in sorted(os.environ):
        if name.startswith("CLFUSE_"):
            digest.update(f"{name}={os.environ[name]}".encode())
    for source in sources:
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def perform(path: Path, folder: Path, small: bool) -> None:
    """Leave a program's figures, its picture and its report in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    if small:  # no time that counts, so no process of its own
        measure(path, folder, small)
    else:
        run([__file__, str(path), str(folder)], folder)
    options = ["--quick"] if small else []
    report = str(folder / "report.html")
    run(["-m", "clfuse", "report", "--output", report, str(path), *options], folder)


def write(folder: Path, extra: Path, kept: Path, small: bool) -> None:
    """Write all pages into a folder, their reports into another.

    Parameters
    ----------
    folder : Path
        Where the pages go.
    extra : Path
        Where the reports go.
    kept : Path
        Where figures, pictures and reports stay until something that they depend on changes.
    small : bool
        Whether programs have small sizes.
    """
    os.environ["MPLBACKEND"] = "Agg"
    reports = extra / "reports"
    reports.mkdir(parents=True, exist_ok=True)
    (folder / "programs").mkdir(parents=True, exist_ok=True)
    found: dict[Path, dict[str, Any]] = {}
    for path in program_paths():
        place = kept / f"{path.stem}-{key_of(path, small)}"
        if not (place / "report.html").is_file():
            print(f"gallery: {path.stem}", flush=True)
            for old in kept.glob(f"{path.stem}-*"):
                shutil.rmtree(old)
            perform(path, place, small)
        found[path] = json.loads((place / f"{path.stem}.json").read_text(encoding="utf-8"))
        shutil.copyfile(place / found[path]["picture"], folder / found[path]["picture"])
        shutil.copyfile(place / "report.html", reports / f"{path.stem}.html")
        shutil.copyfile(path, folder / "programs" / path.name)
    for path, figures in found.items():
        (folder / f"{path.stem}.md").write_text(page_of(path, figures), encoding="utf-8")
    (folder / "index.md").write_text(index_of(found, small), encoding="utf-8")


def main() -> None:
    reader = argparse.ArgumentParser(description="Measure one program of the gallery.")
    reader.add_argument("program", type=Path)
    reader.add_argument("folder", type=Path)
    options = reader.parse_args()
    measure(options.program, options.folder.resolve(), small=False)


if __name__ == "__main__":
    main()
