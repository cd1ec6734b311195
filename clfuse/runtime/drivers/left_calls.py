"""Calls of drivers that other threads are still in when the process ends.

A compiler cannot be interrupted, and may take seconds. A thread that comes back from it while the
interpreter is taken apart is ended within the call: C++ then calls ``terminate``, which aborts the
process (CPython issue 87135). A library that is taken apart while a thread is in it may crash.
"""

from __future__ import annotations

import functools
from typing import Final

__all__ = ["leave"]

SET_TERMINATE: Final = "_ZSt13set_terminatePFvvE"
"""``std::set_terminate(void (*)())``, by the names of the Itanium ABI for C++."""


@functools.cache
def leave() -> bool:
    """Have the process end beside such calls, from here on.

    A thread that C++ would terminate sleeps. After the interpreter has ended the process ends with
    its status, and no library is taken apart.

    Returns
    -------
    bool
        Whether that is possible: by functions of the GNU C library, and of its C++ library.
    """
    import ctypes

    try:
        c = ctypes.CDLL(None)
        set_terminate = getattr(ctypes.CDLL("libstdc++.so.6"), SET_TERMINATE)
        on_exit, at_exit = c.on_exit, getattr(c, "__cxa_atexit")  # noqa: B009 (a private name)
        end, flush, sleep = [ctypes.cast(each, ctypes.c_void_p) for each in (c._exit, c.fflush, c.pause)]
    except (AttributeError, OSError, TypeError):  # another C library
        return False
    on_exit(end, None)  # it is called last, with the status of the process
    at_exit(flush, None, None)  # what C has printed
    set_terminate(sleep)
    return True
