"""The instruction set of the processor, as its kind and the names of its extensions."""

from __future__ import annotations

import platform
from functools import cache


@cache
def instruction_set() -> str:
    """Its kind, and the names of its extensions (Linux); nothing tells the others' apart."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            flags = next((line for line in file if line.startswith(("flags", "Features"))), "")
    except OSError:
        flags = platform.processor()
    return platform.machine() + flags
