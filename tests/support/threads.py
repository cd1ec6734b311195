"""Threads for tests: several do the same at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


def in_threads(work: Callable[[int], Any], count: int = 4) -> None:
    """Run ``work(number)`` in as many threads, and wait for all."""
    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
