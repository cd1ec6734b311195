"""Identifiers of OpenCL C, made from names in Python or joined from several names.

A name in Python need not be one in OpenCL C: it may have letters outside of ASCII ("Été"), or be a
word that the language, its header or a later version of it has a meaning for (``kernel_exec`` is a
macro, ``enqueue_kernel`` a function of OpenCL C 2.0). Names have any length, but compilers and
drivers keep only so much of them.
"""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache
from typing import Final

MOST_LETTERS: Final = 96
"""Longer names are cut. C99 promises 63 letters of a name within a program, and tools that print
names of kernels have columns of about that width; names of our own are up to 90 letters long."""

_KEPT: Final = 48
"""Letters that are kept of a name that is changed."""

_TAKEN: Final = frozenset(
    "kernel_exec enqueue_kernel enqueue_marker kernel_enqueue_flags_t get_kernel_work_group_size"
    " get_kernel_sub_group_count_for_ndrange get_kernel_max_sub_group_size_for_ndrange"
    " get_kernel_preferred_work_group_size_multiple".split()
)
"""What OpenCL C and its headers call so, of names that are made as ours are."""

_USUAL: Final = re.compile(r"(?!__|_[A-Z])[A-Za-z_]\w*", re.ASCII)
"""Names that are the compiler's own begin otherwise."""

_OTHER: Final = re.compile(r"\W", re.ASCII)


@lru_cache(maxsize=4096)
def symbol(name: str) -> str:
    """The name itself where OpenCL C takes it; else one of ASCII with what can be kept of it.

    Different names have different symbols.

    >>> symbol("axpy_kernel"), symbol("été_kernel"), symbol("enqueue_kernel")
    ('axpy_kernel', 'k_t__kernel_671be3c72a7a', 'enqueue_kernel_6c0431689ee8')
    """
    if len(name) <= MOST_LETTERS and _USUAL.fullmatch(name) and name not in _TAKEN:
        return name
    word = re.sub(r"^(?=\d)|^_+", "k_", _OTHER.sub("_", name))[:_KEPT]
    return f"{word}_{hashlib.blake2b(name.encode(), digest_size=6).hexdigest()}"
