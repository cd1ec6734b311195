"""`clfuse.profile`: every kernel's time and bandwidth while a block runs.

The times are those of the device's own clock (OpenCL event profiling), so they hold no Python time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Final

from clfuse import config

from .evaluate import evaluate_all
from .executable import Prepared, observers


@dataclass(frozen=True)
class KernelTime:
    """One launch.

    Attributes
    ----------
    name : str
    start_ns, elapsed_ns : int
        On the device's clock, from the first launch of the profile.
    nbytes : int
        Global memory moved, every array once.
    """

    name: str
    start_ns: int
    elapsed_ns: int
    nbytes: int

    @property
    def bandwidth(self) -> float:
        """Bytes a second."""
        return self.nbytes / max(self.elapsed_ns, 1) * 1e9


companions: Final[list[Callable[[], AbstractContextManager[Callable[[], str]]]]] = []
"""Each is entered for a profile's block, and gives what makes the HTML that a notebook shows of the
block once it has ended, or nothing (`clfuse.tools.report.notebook`)."""


class Profile:
    """What `profile` gives; filled when its block ends.

    Attributes
    ----------
    kernels : list of KernelTime
        Launches in order.
    """

    def __init__(self) -> None:
        self.kernels: list[KernelTime] = []
        self._pages: list[Callable[[], str]] = []

    def __str__(self) -> str:
        totals: dict[str, list[int]] = {}
        for kernel in self.kernels:
            row = totals.setdefault(kernel.name, [0, 0, 0])
            row[0] += 1
            row[1] += kernel.elapsed_ns
            row[2] += kernel.nbytes
        lines = [f"{'kernel':40} {'launches':>8} {'ms':>10} {'GB/s':>8}"]
        for name, (count, elapsed, nbytes) in sorted(totals.items(), key=lambda item: -item[1][1]):
            rate = nbytes / max(elapsed, 1)
            lines.append(f"{name[:40]:40} {count:8d} {elapsed / 1e6:10.3f} {rate:8.2f}")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        if page := "".join([page() for page in self._pages]):
            return page
        import html

        return f"<pre>{html.escape(str(self))}</pre>"

    def export_chrome(self, path: str | PathLike[str]) -> None:
        """Write the launches as a Chrome trace (open it at ``chrome://tracing`` or in Perfetto)."""
        events = [
            {
                "name": kernel.name,
                "ph": "X",
                "ts": kernel.start_ns / 1e3,
                "dur": kernel.elapsed_ns / 1e3,
                "pid": 0,
                "tid": 0,
                "args": {"bytes": kernel.nbytes, "GB/s": kernel.bandwidth / 1e9},
            }
            for kernel in self.kernels
        ]
        import json

        Path(path).write_text(json.dumps({"traceEvents": events}), encoding="utf-8")


@contextmanager
def profile() -> Iterator[Profile]:
    """Time every kernel that the block launches; none waits until it is worth building.

    What was recorded before is evaluated first, what the block recorded at its end, so the profile
    holds the block's work alone.

    Yields
    ------
    Profile
        Complete when the block has ended.

    Examples
    --------
    >>> import clfuse as np
    >>> with np.profile() as times:
    ...     total = float((np.arange(1e6) ** 2).sum())
    >>> len(times.kernels) >= 1
    True
    """
    from clfuse.runtime.devices.selection import get_device
    from clfuse.runtime.launches import launch

    device = get_device()
    evaluate_all(wait=True)
    result = Profile()
    seen: list[tuple[Prepared, Any]] = []

    def observer(step: Prepared, event: Any) -> None:
        seen.append((step, event))

    nothing = launch.observe_launches(device, lambda program, event: None)
    with config.override(build_after_ms=0), nothing:
        observers.append(observer)
        try:
            with ExitStack() as followed:
                pages = [followed.enter_context(companion()) for companion in companions]
                yield result
                evaluate_all(wait=True)
            result._pages = pages
        finally:
            observers.remove(observer)
            device.finish()
        own = [(step, event) for step, event in seen if step.program.device is device]
        first = min([event.profile.start for _, event in own], default=0)
        for step, event in own:
            start, end = event.profile.start, event.profile.end
            result.kernels.append(
                KernelTime(step.rendered.name, start - first, end - start, step.nbytes)
            )
