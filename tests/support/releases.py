"""What tests ask of an older NumPy than the one whose functions clfuse has.

Tests compare with the installed NumPy. What that one refuses because it is of a later release,
clfuse may do all the same.
"""

from __future__ import annotations

from typing import Any, Final

from clfuse.numpy_releases import at_least

IS_BEFORE_2_4: Final = not at_least("2.4.0")


def is_of_later_releases(actual: Any, expected: Any) -> bool:
    """Whether NumPy refuses what clfuse does, and is older than the release that does it."""
    if not IS_BEFORE_2_4 or not isinstance(expected, Exception):
        return False
    # It raises, too, where a later NumPy does: of an argument, which the older one has not.
    return not isinstance(actual, Exception) or "keyword argument" in str(expected)
