"""``python -m clfuse demo``: reads its command line, shows the progress and the table."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from .runner import Measurement

__all__ = ["main"]

LOG_WIDTH = 110
NEEDED = "pip install 'clfuse[demo]' brings what the demo needs"


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the demo's command line."""
    parser = argparse.ArgumentParser(
        prog="python -m clfuse demo",
        description="Run NumPy programs under NumPy and, unchanged, under clfuse.",
    )
    parser.add_argument("--list", action="store_true", help="show the programs and where they are")
    parser.add_argument(
        "--only", metavar="NAME", action="append", help="run this program only (may be repeated)"
    )
    parser.add_argument(
        "--quick", action="store_true", help="small inputs: whether it works, not how fast it is"
    )
    parser.add_argument(
        "--output", type=Path, default=Path("demo-output"), help="folder for the pictures"
    )
    parser.add_argument("--device", metavar="SPEC", help="which device, as in CLFUSE_DEVICE")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    """Run the demo; the exit code is 0 when every program agrees with NumPy, else 1."""
    options = parse(arguments)
    from .runner import program_paths

    paths = program_paths()
    if options.list:
        for name, path in paths.items():
            print(f"{name:16}{path}")
        return 0
    unknown = set(options.only or ()) - set(paths)
    if unknown:
        print(f"clfuse demo: no program {', '.join(sorted(unknown))}; there are {', '.join(paths)}")
        return 2
    chosen = [path for name, path in paths.items() if options.only is None or name in options.only]
    try:
        import PIL  # noqa: F401, the programs' own imports: better said before than after a minute
        import skimage  # noqa: F401
        from rich.console import Console
    except ModuleNotFoundError as error:
        print(f"clfuse demo: no module named {error.name}; {NEEDED}")
        return 1
    console = Console()
    if not console.is_terminal:
        # A log has no width of its own, and rich takes 80 columns for it: too few for the table.
        console.width = LOG_WIDTH
    measurements = run(chosen, options, console)
    show(measurements, console)
    return 0 if all(measurement.agrees for measurement in measurements) else 1


def run(paths: Sequence[Path], options: argparse.Namespace, console: Console) -> list[Measurement]:
    """Measure the programs, with a line that says what is being done."""
    import clfuse

    from .runner import measure

    if options.device is not None:
        clfuse.set_device(options.device)
    device = clfuse.get_device()
    console.print(
        f"device: {device.name} ({device.platform_name}, {device.index})", highlight=False
    )
    done = []
    for number, path in enumerate(paths, 1):
        label = f"[{number}/{len(paths)}] {path.stem}"
        if not console.is_terminal:
            # A log shows no spinner: one line a program.
            console.print(label.replace("[", "\\["), highlight=False)
        with console.status(label) as status:
            done.append(
                measure(
                    path,
                    quick=options.quick,
                    folder=options.output,
                    progress=lambda stage, label=label, status=status: status.update(
                        f"{label}: {stage}"
                    ),  # type: ignore[misc]
                )
            )
    return done


def show(measurements: Sequence[Measurement], console: Console) -> None:
    """Print the table, and below it what a reader must know to read it."""
    from rich.table import Table

    table = Table(title="The same source file under NumPy and under clfuse")
    table.add_column("program")
    for heading in ("NumPy ms", "first ms", "steady ms", "ratio", "kernels", "bytes moved"):
        table.add_column(heading, justify="right")
    table.add_column("largest error")
    for row in measurements:
        if row.statistical:
            error = f"{row.error:.2f} standard errors"
        else:
            error = "identical" if row.error == 0 else f"{row.error:.1e}"
        table.add_row(
            row.name,
            f"{row.numpy_s * 1e3:.1f}",
            f"{row.first_s * 1e3:.1f}",
            f"{row.steady_s * 1e3:.1f}",
            f"{row.ratio:.1f}x",
            str(row.kernels),
            ("" if row.complete else "over ") + f"{row.nbytes / 1e6:,.1f} MB",
            error if row.agrees else f"[red]{error}: WRONG[/red]",
        )
    console.print(table)
    console.print(
        "first: with planning and compiling; steady: the median of later runs.\n"
        "largest error: as a part of the largest value; of estimates: standard errors apart.",
        highlight=False,
    )
    for row in measurements:
        notes = [row.title]
        if row.fallbacks:
            notes.append(f"{row.fallbacks} operations a run done by NumPy on the host")
        if row.picture is not None:
            notes.append(f"wrote {row.picture}")
        console.print(f"{row.name}: {'; '.join(notes)}", highlight=False, soft_wrap=True)
