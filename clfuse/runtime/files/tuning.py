"""The files of ``bench --tune``: traits that were measured of a device, in the user's cache.

One JSON file a device. It is believed only if it is whole, of this version, about this device and
driver, and every number is one that the device could have: else one warning says what is wrong with
the file, and the defaults hold.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any, Final

from clfuse.dataclass import frozen
from clfuse.errors import DeviceWarning, warn_user
from clfuse.target.traits import MAX_VECTOR_BYTES, MIN_VECTOR_BYTES, DeviceTraits

from .storage import cache_folder, read_ours, write_whole

__all__ = ["COST_RANGES", "RANGES", "Measured", "apply", "path_of", "read", "write"]

VERSION: Final = 3
"""Of the file: another one is not read."""

LARGEST_FILE: Final = 1 << 16
"""Bytes; what is longer was not written by us."""

#: Trait -> its type, and the least and largest value that a file may give it.
RANGES: Final[Mapping[str, tuple[type, float, float]]] = {
    "vector_bytes": (int, MIN_VECTOR_BYTES, MAX_VECTOR_BYTES),
    "work_items": (int, 1, 1 << 24),
    "stream_nbytes": (int, 0, 1 << 62),
    "reads_past": (bool, False, True),
    "operation_nbytes": (float, 1e-3, 1e3),
    "launch_nbytes": (int, 1 << 8, 1 << 30),
    "gather_weight": (float, 0.1, 1e3),
    "unrolled_weight": (float, 8.0, 1e3),
}

#: The same of the costs (`target.costs`), in nanoseconds.
COST_RANGES: Final[Mapping[str, tuple[type, float, float]]] = {
    "addition_ns": (float, 1e-3, 1e3),
    "wake_ns": (float, 0.0, 1e8),
    "launch_ns": (float, 0.0, 1e8),
    "inline_launch_ns": (float, 0.0, 1e8),
}

#: Traits that say which device, driver and schedule a file is about.
_ABOUT: Final = ("name", "platform", "driver", "schedule")


@frozen
class Measured:
    """The figures behind the traits, in SI units: for people, not for `read`."""

    copy_nbytes_per_s: float
    launch_s: float
    operation_s: float


class _Wrong(ValueError):
    """What is wrong with a file."""


_warned: set[Path] = set()


def path_of(traits: DeviceTraits) -> Path | None:
    """Where the file about a device is, or would be; None for a user without a home."""
    folder = cache_folder()
    if folder is None:
        return None
    about = [traits.name, traits.platform, traits.vendor, str(traits.compute_units)]
    fingerprint = hashlib.sha256("\0".join(about).encode()).hexdigest()[:16]
    return folder / f"tuning-{fingerprint}.json"


def write(traits: DeviceTraits, measured: Measured, when: str) -> Path:
    """Keep the traits of a device that was measured; returns where.

    Raises OSError: there is no folder for it, or it cannot be written.
    """
    path = path_of(traits)
    if path is None:
        raise OSError("there is no folder to keep files in; XDG_CACHE_HOME names one")
    contents = {
        "version": VERSION,
        "when": when,
        **{name: getattr(traits, name) for name in _ABOUT},
        "traits": {name: getattr(traits, name) for name in RANGES},
        "costs": {name: getattr(traits.costs, name) for name in COST_RANGES},
        "measured": asdict(measured),
    }
    write_whole(path, (json.dumps(contents, indent=2) + "\n").encode())
    _warned.discard(path)
    return path


def apply(traits: DeviceTraits) -> DeviceTraits:
    """The traits as they were measured, where they were; warns once about a file that is wrong."""
    path = path_of(traits)
    if path is None:
        return traits
    try:
        return read(path, traits)
    except FileNotFoundError:
        return traits
    except (OSError, _Wrong) as error:
        if path not in _warned:
            _warned.add(path)
            warn_user(
                f"{path}: {error}; the defaults are used instead. Measure again with `python -m "
                "clfuse bench --tune`, delete the file, or set CLFUSE_TUNING=off",
                DeviceWarning,
            )
        return traits


def read(path: Path, traits: DeviceTraits) -> DeviceTraits:
    """`traits` with what a file says about them.

    Raises ValueError: saying what is wrong with the file.
    Raises OSError: it cannot be read.
    """
    text = read_ours(path, LARGEST_FILE)
    try:
        contents = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _Wrong(f"no JSON: {error}") from error
    if not isinstance(contents, dict):
        raise _Wrong(f"a {type(contents).__name__} instead of an object")
    if contents.get("version") != VERSION:
        raise _Wrong(f"version {contents.get('version')!r} instead of {VERSION}")
    for name in _ABOUT:
        if contents.get(name) != getattr(traits, name):
            raise _Wrong(
                f"measured for {name} {contents.get(name)!r}, but it is {getattr(traits, name)!r}"
            )
    given = contents.get("traits")
    if not isinstance(given, dict) or given.keys() != RANGES.keys():
        raise _Wrong(f"its traits should be {', '.join(RANGES)}")
    given_costs = contents.get("costs")
    if not isinstance(given_costs, dict) or given_costs.keys() != COST_RANGES.keys():
        raise _Wrong(f"its costs should be {', '.join(COST_RANGES)}")
    when = contents.get("when")
    if not isinstance(when, str) or not when:
        raise _Wrong(f"when is {when!r} instead of a date")
    measured = contents.get("measured")
    names = {field.name for field in fields(Measured)}
    if not isinstance(measured, dict) or measured.keys() != names:
        raise _Wrong(f"what was measured should be {', '.join(sorted(names))}")
    for name, value in measured.items():
        _number(name, value, float, 0.0, math.inf)
    changes: dict[str, Any] = {
        name: _number(name, given[name], *allowed) for name, allowed in RANGES.items()
    }
    if changes["vector_bytes"] & (changes["vector_bytes"] - 1):
        raise _Wrong(f"vector_bytes is {changes['vector_bytes']}, which is no power of two")
    costs: dict[str, Any] = {
        name: _number(name, given_costs[name], *allowed) for name, allowed in COST_RANGES.items()
    }
    return replace(traits, **changes, costs=replace(traits.costs, **costs), tuned=when)


def _number(name: str, value: Any, kind: type, least: float, most: float) -> float:
    if kind is bool:
        if type(value) is not bool:
            raise _Wrong(f"{name} is {value!r} instead of true or false")
        return value
    fits = type(value) is int or (kind is float and type(value) is float)
    # A NaN is in no range.
    if not fits or not least <= value <= most:
        what = "a whole number" if kind is int else "a number"
        raise _Wrong(f"{name} is {value!r} instead of {what} from {least:g} to {most:g}")
    return kind(value)  # type: ignore[no-any-return]
