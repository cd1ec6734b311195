"""Every ``CLFUSE_*`` setting in one table, read from the environment once, on first use.

>>> settings.fp64
'error'
>>> with override(fp64="downcast"):
...     settings.fp64
'downcast'
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from clfuse.dataclass import frozen

from .errors import SettingError
from .target.simulated_devices import SIMULATED_DEVICES

__all__ = [
    "SETTINGS", "Setting", "Settings", "at_import", "environment_faults", "override", "reload",
    "settings",
]

Value = str | int | bool


@frozen
class Setting:
    """One row of the table.

    Attributes
    ----------
    name : str
        The attribute of `settings`.
    default : str or int or bool
        The value where the variable is unset or empty.
    parse : callable
        Text or value -> value; a ValueError for what it does not take.
    choices : str
        What it takes, in words for the error message.
    doc : str
        What it does, for ``python -m clfuse doctor`` and clfuse/guide/settings.md.
    plans : bool
        Whether plans and kernels depend on it.
    """

    name: str
    default: Value
    parse: Callable[[Value], Value]
    choices: str
    doc: str
    plans: bool = False

    @property
    def env(self) -> str:
        """The environment variable."""
        return f"CLFUSE_{self.name.upper()}"

    def value_of(self, given: Value) -> Value:
        """Return `given` parsed; SettingError names the variable, the value and the choices."""
        try:
            return self.parse(given)
        except (ValueError, TypeError):
            raise SettingError(f"{self.env}: {given!r}; it takes {self.choices}") from None

    def of_environment(self) -> Value:
        """What the variable says, or the default."""
        text = os.environ.get(self.env, "").strip()
        return self.value_of(text) if text else self.default


def _one_of(*words: str) -> Callable[[Value], Value]:
    def parse(given: Value) -> Value:
        word = str(given).strip().lower()
        if word not in words:
            raise ValueError(given)
        return word

    return parse


def _switch(given: Value) -> Value:
    word = str(given).strip().lower()
    if word in ("on", "1", "true", "yes"):
        return True
    if word in ("off", "0", "false", "no"):
        return False
    raise ValueError(given)


DEBUG_LEVELS: tuple[str, ...] = ("2", "3", "4")
"""Levels of ``CLFUSE_DEBUG`` above 1, which is on."""


def _debug(given: Value) -> Value:
    word = str(given).strip().lower()
    if word == "sync":
        return word
    return int(word) if word in DEBUG_LEVELS else int(_switch(given))


def _text(given: Value) -> Value:
    return str(given).strip()


def _count(least: int, multiple_of_two: bool = False) -> Callable[[Value], Value]:
    def parse(given: Value) -> Value:
        number = int(given)
        if number < least or (multiple_of_two and number & (number - 1)):
            raise ValueError(given)
        return number

    return parse


UNITS: dict[str, int] = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
"""What a number of bytes may end with, and how many each stands for."""


def _nbytes(given: Value) -> Value:
    text = str(given).strip().upper()
    unit = text[-1:] if text[-1:] in UNITS else ""
    number = int(text.removesuffix(unit)) * UNITS[unit]
    if number < 0:
        raise ValueError(given)
    return number


#: Every setting there is. A new one is a row here and an annotation in `Settings`.
SETTINGS: tuple[Setting, ...] = (
    Setting(
        "device", "", _text, "cpu, gpu, part of a platform's or device's name, 0, 0:1 or name:1",
        "the device that is used where the program selects none"
    ),
    Setting(
        "vendors", "auto", _one_of("auto", "system"), "auto or system",
        "which OpenCL runtimes are looked for: auto adds those of this Python environment and an"
        " unregistered NVIDIA driver to the system's; system takes what OCL_ICD_VENDORS or the"
        " system's folder lists, no more"
    ),
    Setting(
        "simulate", "", _one_of("", *SIMULATED_DEVICES),
        f"nothing, {', '.join(SIMULATED_DEVICES)}",
        "makes the CPU devices appear as another device, with its traits, its limits and memory of"
        " its own; read when devices are first listed (for tests)"
    ),
    Setting(
        "libraries", True, _switch, "on or off",
        "off leaves CLBlast and VkFFT aside where they are installed: matrix products are clfuse's"
        " own kernels on devices with memory of their own, Fourier transforms NumPy's", plans=True
    ),
    Setting(
        "fusion", True, _switch, "on or off",
        "off runs one kernel per operation: the baseline for every fusion figure", plans=True
    ),
    Setting(
        "fallback", "auto", _one_of("auto", "allow", "warn", "raise"),
        "auto, allow, warn or raise",
        "what happens when NumPy on the host must do an operation; auto warns on devices that must"
        " copy for it"
    ),
    Setting(
        "numpy_packages", "", _text, "names of packages, with commas between them",
        "packages that take no arrays but NumPy's: their public functions and methods get such, in"
        " the memory of ours; read when clfuse is imported"
    ),
    Setting(
        "fp", "strict", _one_of("strict", "fast"), "strict or fast",
        "fast lets the compiler reassociate and approximate floating-point arithmetic, and take it "
        "for finite, in kernels that only calculate", plans=True
    ),
    Setting(
        "fp64", "error", _one_of("error", "downcast"), "error or downcast",
        "float64 on a device without double precision: an error, or float32 instead"
    ),
    Setting(
        "exact_random", False, _switch, "on or off",
        "on draws random numbers on the host, with NumPy's own streams; off in kernels, by counter"
    ),
    Setting(
        "schedule", "auto", _one_of("auto", "cpu", "gpu"), "auto, cpu or gpu",
        "forces the schedule of the kernels, whatever the device is (for tests)", plans=True
    ),
    Setting(
        "max_nodes", 20_000, _count(1), "a whole number from 1",
        "recorded operations after which what was recorded is computed by itself"
    ),
    Setting(
        "loop_nodes", 512, _count(0), "a whole number; 0: never",
        "recorded operations after which a loop of equal rounds is computed at the end of a round,"
        " so that one plan serves all of it"
    ),
    Setting(
        "max_pinned_bytes", 1 << 28, _count(0), "a whole number of bytes",
        "bytes that memory grows by before it is looked whether recorded work alone holds half of"
        " them: then it is computed, to let go of them"
    ),
    Setting(
        "memory_limit", 0, _nbytes,
        "a whole number of bytes, which may end with K, M, G or T; 0: the device's",
        "bytes of device memory that arrays may take; what does not fit lies on the host, and is"
        " computed in tiles"
    ),
    Setting(
        "host_us", 50, _count(0), "a whole number of microseconds",
        "small programs are left to NumPy: this much work of its own, and 0.4 us more for every"
        " operation; 0 leaves everything to the device"
    ),
    Setting(
        "build_after_ms", 50, _count(0), "a whole number of milliseconds",
        "NumPy calculates an expression until it has worked on it for as long, which is what it"
        " takes to build a kernel; 0 builds kernels at once, so that an expression has the same"
        " bits whenever it is evaluated"
    ),
    Setting(
        "background", "auto", _one_of("auto", "on", "off"), "auto, on or off",
        "whether plans and kernels are made by a thread of their own while NumPy calculates; auto"
        " does so where the process may use more than one core, off waits for the compiler"
    ),
    Setting(
        "inline", True, _switch, "on or off",
        "on has the calling thread run what takes less than a launch, where the driver can (PoCL);"
        " off leaves it to the threads of the device", plans=True
    ),
    Setting(
        "ahead", True, _switch, "on or off",
        "on launches a call of a kernel written in Python at once where every call of it so far was"
        " looked at before anything else was recorded; off records each"
    ),
    Setting(
        "kernels", "compiled", _one_of("compiled", "python"), "compiled or python",
        "python runs kernels written in Python as they stand, index by index, with checked bounds"
    ),
    Setting(
        "check", "off", _one_of("off", "bounds"), "off or bounds",
        "bounds checks every index in kernels written in Python while they run on the device"
    ),
    Setting(
        "progress", "auto", _one_of("auto", "on", "off"), "auto, on or off",
        "whether what takes over two seconds shows a bar, drawn by tqdm on the standard error; auto"
        " does so on terminals and in notebooks"
    ),
    Setting(
        "debug", 0, _debug, "0, 1, 2, 3, 4 or sync",
        "1 checks the invariants of every graph and plan, and allocates not a byte more than asked"
        " for; 2 also prints each new plan, 3 its OpenCL C, 4 each launch with its time; sync,"
        " without any of this, waits after every launch, so that the error of a kernel that faults"
        " names it"
    ),
    Setting(
        "tuning", True, _switch, "on or off",
        "whether what `python -m clfuse bench --tune` has measured of a device is used, and kernels"
        " that run often are tried in other geometries; both are kept in the user's cache folder,"
        " clfuse/tuning-*.json and clfuse/geometries.txt", plans=True
    ),
    Setting(
        "compiled", True, _switch, "on or off",
        "off records in plain Python though clfuse's compiled module is there; read when clfuse is"
        " imported"
    ),
    Setting(
        "vector_bytes", 0, _count(0, multiple_of_two=True), "0 or a power of two",
        "bytes of the vectors in CPU kernels; 0 takes the device's", plans=True
    ),
    Setting(
        "work_items", 0, _count(0), "a whole number from 0",
        "work-items of a large launch; 0 takes the device's", plans=True
    ),
    Setting(
        "stream_bytes", -1, _count(-1), "a whole number from -1",
        "bytes that a CPU kernel moves from which on it stores past the caches; -1 takes the"
        " device's", plans=True
    ),
    Setting(
        "tile_bytes", -1, _count(-1), "a whole number from -1",
        "bytes of a core's cache in which steps over neighbours, of large arrays, follow each other"
        " tile by tile; 0: each step goes through memory; -1 takes the device's", plans=True
    ),
)


class Settings:
    """The values in force, one attribute a row of `SETTINGS`.

    The environment is read when the first attribute is asked for: `__getattr__` runs only while the
    instance holds no values, later accesses are plain look-ups.
    """

    device: str
    vendors: str
    simulate: str
    libraries: bool
    fusion: bool
    fallback: str
    numpy_packages: str
    fp: str
    fp64: str
    exact_random: bool
    schedule: str
    max_nodes: int
    loop_nodes: int
    max_pinned_bytes: int
    memory_limit: int
    host_us: int
    build_after_ms: int
    background: str
    inline: bool
    ahead: bool
    kernels: str
    check: str
    progress: str
    debug: int | str
    tuning: bool
    compiled: bool
    vector_bytes: int
    work_items: int
    stream_bytes: int
    tile_bytes: int

    @property
    def planning(self) -> tuple[Value, ...]:
        """The values that plans and kernels depend on: a part of every key under which one is
        kept."""
        if not self.__dict__:
            self._read_environment()
        return self.__dict__[PLANNING]  # type: ignore[no-any-return]

    @property
    def debug_level(self) -> int:
        """The number that ``CLFUSE_DEBUG`` is; ``sync`` is none of them."""
        return self.debug if isinstance(self.debug, int) else 0

    def _set(self, values: dict[str, Value]) -> None:
        held = self.__dict__
        held.update(values)
        held[PLANNING] = tuple([held[row.name] for row in SETTINGS if row.plans])
        for function in changed:
            function()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name.startswith("__") or name not in _ROWS:
                raise AttributeError(f"no setting {name!r}; there are {', '.join(_ROWS)}")
            self._read_environment()
            return self.__dict__[name]

    def _read_environment(self) -> None:
        # All or nothing: a bad value leaves the settings unread, so that the error comes again and
        # is not forgotten.
        self._set({row.name: row.of_environment() for row in SETTINGS})


changed: list[Callable[[], None]] = []
"""Called after settings have changed, by who keeps what follows from them."""

PLANNING = " planning"
"""Where `Settings.planning` is kept; no attribute's name."""

_ROWS: dict[str, Setting] = {row.name: row for row in SETTINGS}

#: The one instance that every layer reads.
settings = Settings()


OF_TESTS: tuple[str, ...] = (
    "CLFUSE_TEST_", "CLFUSE_SUITE_", "CLFUSE_FUZZ_", "CLFUSE_SIMULATED_TESTS",
    "CLFUSE_VENDORS_SECONDS", "CLFUSE_FAILURES",
)
"""What variables begin with that only clfuse's own tests read."""


def at_import(name: str) -> Value:
    """What the environment says of a setting, before the settings are read: until then a program
    may set variables.

    >>> at_import("numpy_packages")
    ''
    """
    return _ROWS[name].of_environment()


def environment_faults() -> list[str]:
    """What is wrong with the ``CLFUSE_*`` variables: a value that one does not take, or a name that
    no setting has, with the nearest one that there is.

    >>> environment_faults()
    []
    """
    known = {row.env: row for row in SETTINGS}
    faults = []
    for name in [name for name in os.environ if name.startswith("CLFUSE_")]:
        row = known.get(name)
        text = os.environ[name].strip()
        if row is None:
            if not name.startswith(OF_TESTS):
                faults.append(_unknown(name, list(known)))
        elif text:
            try:
                row.value_of(text)
            except SettingError as error:
                faults.append(str(error) + _nearest(text, re.findall(r"\w+", row.choices)))
    return faults


def _unknown(name: str, known: list[str]) -> str:
    prefix = "CLFUSE_"
    rest = [each.removeprefix(prefix) for each in known]
    advice = _nearest(name.removeprefix(prefix), rest, prefix)
    return f"{name} is no setting of clfuse's" + (advice or f"; there are {', '.join(known)}")


def _nearest(word: str, known: list[str], prefix: str = "") -> str:
    import difflib  # only where something is wrong

    found = difflib.get_close_matches(word, known, 1)
    return f"; did you mean {prefix}{found[0]}?" if found else ""


def reload() -> None:
    """Read the environment again; what `override` has set is dropped.

    Raises
    ------
    SettingError
        A variable with a value that it does not take.
    """
    settings.__dict__.clear()
    for function in changed:
        function()
    settings._read_environment()


@contextmanager
def override(**changes: Value) -> Iterator[Settings]:
    """Change settings for the length of a ``with`` block, in all threads.

    Parameters
    ----------
    **changes
        Setting name -> value, as the environment variable or as the parsed value: ``fusion="off"``,
        ``fusion=False``.

    Raises
    ------
    SettingError
        An unknown name, or a value that the setting does not take.
    """
    values: dict[str, Value] = {}
    for name, given in changes.items():
        if name not in _ROWS:
            raise SettingError(f"no setting {name!r}; there are {', '.join(_ROWS)}")
        values[name] = _ROWS[name].value_of(given)
    if not settings.__dict__:
        settings._read_environment()
    before = {name: settings.__dict__[name] for name in values}
    settings._set(values)
    try:
        yield settings
    finally:
        settings._set(before)
