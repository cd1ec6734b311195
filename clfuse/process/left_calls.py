"""Calls of drivers that other threads are still in when the process ends.

A compiler cannot be interrupted, and may take seconds. A thread that comes back from it while the
interpreter is taken apart is ended within the call: C++ then calls ``terminate``, which aborts the
process (CPython issue 87135). A library that is taken apart while a thread is in it may crash.
"""

from __future__ import annotations

import functools
from typing import Final

__all__ = ["leave", "let_sleep"]

SET_TERMINATE: Final = "_ZSt13set_terminatePFvvE"
"""``std::set_terminate(void (*)())``, by the names of the Itanium ABI for C++."""


@functools.cache
def let_sleep() -> bool:
    """Have a thread that C++ would terminate sleep, from here on: the process ends beside it.

    Returns
    -------
    bool
        Whether that is possible: the C++ library is GNU's.
    """
    import ctypes

    try:
        set_terminate = getattr(ctypes.CDLL("libstdc++.so.6"), SET_TERMINATE)
        set_terminate(ctypes.cast(ctypes.CDLL(None).pause, ctypes.c_void_p))
    except (AttributeError, OSError, TypeError):
        return False
    return True


@functools.cache
def leave() -> bool:
    """Have the process end beside calls that take long, from here on: also, no library is taken
    apart after the interpreter has ended.

    Returns
    -------
    bool
        Whether that is possible: the C library is GNU's, too.
    """
    import ctypes

    try:
        c = ctypes.CDLL(None)
        on_exit, at_exit = c.on_exit, getattr(c, "__cxa_atexit")
        end, flush = [ctypes.cast(each, ctypes.c_void_p) for each in (c._exit, c.fflush)]
    except (AttributeError, OSError, TypeError):
        return False
    if not let_sleep():
        return False
    on_exit(end, None)  # it is called last, with the status of the process
    at_exit(flush, None, None)  # what C has printed
    return True
