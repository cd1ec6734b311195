"""Tracebacks that end with the user's line: frames of clfuse are left out where an error is shown.

Python's excepthook, that of threads, and IPython's display are wrapped when clfuse is imported;
what was there before is called. Nothing is done before an error reaches the top of the program, and
``traceback`` and `logging` see all frames. An error that says what is wrong with a call
(`OF_CALLS`) is shown so; any other may be a fault of clfuse's own, and keeps its frames.
``CLFUSE_DEBUG`` at 1 or more keeps all of them.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Final

from .config import settings
from .errors import ClfuseError, SettingError, is_missing_name
from .user_frames import COMPILED, OWN_FOLDERS

__all__ = ["hide_frames", "install", "linked", "related"]

OF_CALLS: Final = (
    ArithmeticError, BufferError, ClfuseError, IndexError, KeyboardInterrupt, MemoryError,
    OverflowError, TypeError, ValueError, Warning,
)
"""Errors that are about what the user wrote."""

OWN: Final = (OWN_FOLDERS[1], COMPILED)

BEHIND: Final = OWN_FOLDERS + tuple(
    os.path.join(os.path.dirname(OWN_FOLDERS[0].rstrip(os.sep)), name, "")
    for name in ("pyopencl", "tqdm", "mako")
)
"""Frames in these are none of the user's where clfuse has called: an interrupt may fall there."""


def hide_frames(error: BaseException) -> None:
    """Take frames of clfuse's, and of its packages behind them, out of the tracebacks of an error
    and of those that it came from."""
    for each in related(error):
        if isinstance(each, OF_CALLS) or is_missing_name(each):
            each.__traceback__ = _without_own(each.__traceback__)


def related(error: BaseException) -> Iterator[BaseException]:
    """An error, its causes, contexts and members, each once."""
    pending: list[Any] = [error]
    seen: set[int] = set()
    while pending:
        each = pending.pop()
        if not isinstance(each, BaseException) or id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        members = getattr(each, "exceptions", ())
        pending += [each.__cause__, each.__context__]
        pending += members if isinstance(members, tuple) else ()


def linked(frames: list[TracebackType]) -> TracebackType | None:
    """A traceback of these frames alone."""
    following = None
    for each in reversed(frames):
        each.tb_next, following = following, each
    return following


def _without_own(traceback: TracebackType | None) -> TracebackType | None:
    kept = []
    is_inside, is_users = False, False
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        if file.startswith(OWN):
            is_inside = True
        elif not (is_inside and file.startswith(BEHIND)):
            is_inside = False
            is_users = is_users or not file.startswith("<frozen ")
        if not is_inside or not is_users:
            kept.append(traceback)
        traceback = traceback.tb_next
    return linked(kept)


def _shows_all() -> bool:
    try:
        return bool(settings.debug)
    except SettingError:
        return False


def _prepare(error: BaseException) -> None:
    """Make an error ready to be shown."""
    from .advice import advice

    text = advice(error)
    if not _shows_all():
        hide_frames(error)
    if text:
        notes = getattr(error, "__notes__", [])  # Python shows them since 3.11
        if text not in notes:
            error.__notes__ = [*notes, text]


def _hook(previous: Callable[..., Any]) -> Callable[..., None]:
    def hook(
        kind: type[BaseException], error: BaseException, traceback: TracebackType | None
    ) -> None:
        if isinstance(error, BaseException):
            _prepare(error)
            traceback = error.__traceback__
        previous(kind, error, traceback)

    return hook


def _thread_hook(previous: Callable[[Any], Any]) -> Callable[[Any], None]:
    def hook(arguments: Any) -> None:
        error = arguments.exc_value
        if error is not None:
            _prepare(error)
            arguments = threading.ExceptHookArgs(
                (arguments.exc_type, error, error.__traceback__, arguments.thread)
            )
        previous(arguments)

    return hook


def _in_ipython() -> None:
    """Have IPython show errors so, unless something else decides there how they are shown."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None or shell.custom_exceptions:
        return

    def show(
        shell: Any,
        kind: type[BaseException],
        error: BaseException,
        traceback: TracebackType | None,
        tb_offset: int | None = None,
    ) -> None:
        # The first frame is IPython's own, which it leaves out itself.
        _prepare(error)
        traceback = error.__traceback__
        shell.showtraceback((kind, error, traceback), tb_offset=tb_offset)

    shell.set_custom_exc((Exception,), show)


def install() -> None:
    """Show errors so from here on."""
    sys.excepthook = _hook(sys.excepthook)
    threading.excepthook = _thread_hook(threading.excepthook)
    _in_ipython()
