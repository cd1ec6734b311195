"""The exceptions that clfuse raises, and the classes of its warnings.

Each error is also a subclass of the one that NumPy or Python would raise in its place, so that code
written for NumPy catches it without knowing clfuse.
"""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from typing import Any

from .user_frames import counted

__all__ = [
    "AllocationError",
    "ClfuseError",
    "DeviceDtypeError",
    "DeviceError",
    "DeviceWarning",
    "FallbackError",
    "FallbackWarning",
    "JitError",
    "JitWarning",
    "KernelBuildError",
    "KernelBuildWarning",
    "KernelError",
    "SettingError",
    "SettingWarning",
    "fp64_error",
    "is_missing_name",
    "user_place",
    "warn_user",
]

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep

#: Frames between ours: of Python's `contextlib`, where a context manager warns.
_PASSED = (_PACKAGE, contextlib.__file__)


class ClfuseError(Exception):
    """Base of every error that is clfuse's own.

    Examples
    --------
    >>> import clfuse as np
    >>> try:
    ...     np.set_device("no such device")
    ... except np.ClfuseError as error:
    ...     type(error).__name__
    'DeviceError'
    """


class DeviceError(ClfuseError, RuntimeError, ValueError):
    """No usable OpenCL device, or not the one asked for; says what to install or to choose.

    Examples
    --------
    >>> import clfuse as np
    >>> np.set_device("no such device")
    Traceback (most recent call last):
      ...
    clfuse.errors.DeviceError: ...
    """


class KernelBuildError(ClfuseError, RuntimeError):
    """OpenCL C that the device's compiler refused.

    Parameters
    ----------
    message : str
        What failed, on which device.
    path : str, optional
        The file that holds the source and the compiler's log.
    log : str, optional
        The compiler's log.

    Examples
    --------
    >>> import clfuse as np
    >>> wrong = np.RawKernel("__kernel void f(__global int *x) { x[0] = y; }", "f")
    >>> x = np.zeros(1, np.int32)
    >>> wrong((1,), (1,), (x,))
    >>> x.get()
    Traceback (most recent call last):
      ...
    clfuse.errors.KernelBuildError: ...
    """

    def __init__(self, message: str, path: str = "", log: str = "") -> None:
        super().__init__(message)
        self.path = path
        self.log = log

    def __reduce__(self) -> tuple[type[KernelBuildError], tuple[str, str, str]]:
        return type(self), (str(self), self.path, self.log)


class AllocationError(MemoryError, ClfuseError):
    """Device memory that cannot be had: more than one allocation may be, or than is left."""


class FallbackError(ClfuseError, RuntimeError):
    """An operation would have run on the host under ``CLFUSE_FALLBACK=raise``.

    Examples
    --------
    >>> import clfuse as np
    >>> with np.config.override(fallback="raise"):
    ...     np.nested_iters(np.ones((2, 2)), [[0], [1]])
    Traceback (most recent call last):
      ...
    clfuse.errors.FallbackError: ...
    """


class SettingError(ClfuseError, ValueError):
    """A ``CLFUSE_*`` variable or a setting with a value that it does not take.

    Examples
    --------
    >>> import clfuse as np
    >>> with np.config.override(fusion="sometimes"):
    ...     pass
    Traceback (most recent call last):
      ...
    clfuse.errors.SettingError: ...
    """


class SettingWarning(UserWarning):
    """A ``CLFUSE_*`` variable that no setting has, or with a value that its setting does not take;
    the import says so, and the first use of a setting raises a `SettingError` for such a value."""


class DeviceDtypeError(ClfuseError, TypeError):
    """A dtype that the device has not: float64 where there is no double precision."""


def fp64_error(device_name: str, dtype: object) -> DeviceDtypeError:
    """The error for double precision on a device that has none."""
    return DeviceDtypeError(
        f"{dtype} on {device_name}: the device has no double precision; use float32, set "
        "CLFUSE_FP64=downcast to compute in float32, or select another device (CLFUSE_DEVICE)"
    )


class JitError(ClfuseError, TypeError):
    """A function that `clfuse.jit` cannot replay, and the line that is the reason.

    Examples
    --------
    >>> import clfuse as np
    >>> @np.jit
    ... def f(x):
    ...     return x if x.any() else -x
    >>> f(np.ones(3))
    Traceback (most recent call last):
      ...
    clfuse.errors.JitError: ...
    """


class KernelError(ClfuseError, TypeError):
    """A kernel written in Python that is not in the language, or types in it that disagree.

    Parameters
    ----------
    message : str
        Names file, line, what stands there, and what to write instead.
    filename : str
    lineno : int

    Examples
    --------
    >>> import clfuse as np
    >>> @np.kernel
    ... def f(i, x):
    ...     x[i] = open("a file")
    Traceback (most recent call last):
      ...
    clfuse.errors.KernelError: ...
    """

    def __init__(self, message: str, filename: str = "", lineno: int = 0) -> None:
        super().__init__(message)
        self.filename = filename
        self.lineno = lineno

    def __reduce__(self) -> tuple[type[KernelError], tuple[str, str, int]]:
        return type(self), (str(self), self.filename, self.lineno)


class DeviceWarning(RuntimeWarning):
    """A device that is listed but does not work was left out, or a file about one is wrong, or
    nothing can be kept between runs."""


class KernelBuildWarning(RuntimeWarning):
    """A kernel of ours that the device's compiler refused, or a launch that the driver refused: its
    values were computed otherwise."""


class FallbackWarning(UserWarning):
    """An operation ran on the host, by NumPy, because no kernel does it."""


class JitWarning(UserWarning):
    """A jitted function is traced again and again, so that nothing is gained."""


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn as if from the innermost line that is not clfuse's: the line that a user can change."""
    level = 2
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PASSED):
        level += counted(frame)
        frame = frame.f_back
    warnings.warn(message, category, stacklevel=level)


class OutsideWarnings:
    """What Python's module `warnings` is to code of NumPy's that clfuse calls: to it, clfuse's own
    frames are not there, so that ``stacklevel=2`` is the user's line."""

    def __getattr__(self, name: str) -> Any:
        return getattr(warnings, name)

    @staticmethod
    def warn(
        message: Any,
        category: type[Warning] | None = None,
        stacklevel: int = 1,
        source: Any = None,
        *,
        skip_file_prefixes: tuple[str, ...] = (),
    ) -> None:
        """`warnings.warn`."""
        frame, level = sys._getframe(1), 2
        if skip_file_prefixes:  # since Python 3.12; they then count whatever the level is
            folders = (_PACKAGE, *skip_file_prefixes)
            while frame.f_back is not None and frame.f_code.co_filename.startswith(folders):
                level += counted(frame)
                frame = frame.f_back
            stacklevel = 1
        while stacklevel > 1 and frame.f_back is not None:
            level += counted(frame)
            frame = frame.f_back
            stacklevel -= not frame.f_code.co_filename.startswith(_PACKAGE)
        warnings.warn(message, category, level, source)


def user_place() -> str:
    """``file:line`` of the innermost line that is neither clfuse's nor NumPy's."""
    numpy = getattr(sys.modules.get("numpy"), "__file__", None)
    folders = (_PACKAGE, *([os.path.dirname(numpy) + os.sep] if numpy else []))
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(folders):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def is_missing_name(error: BaseException) -> bool:
    """Whether it says that clfuse has no such name."""
    ours = sys.modules["clfuse"]
    return isinstance(error, AttributeError) and getattr(error, "obj", None) is ours
