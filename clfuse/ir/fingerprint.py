"""The fingerprint of a snapshot's structure: a hash that is the same in every process.

A snapshot's items compare by identity within a process. The fingerprint is made of what they
consist of: operations, dtypes, shapes, parameters, which node reads which, which values are held
outside. Equal structures have equal fingerprints, and different ones different fingerprints, but
for the odds of a hash. A parameter whose text differs between processes makes a structure that is
not known again, nothing worse.
"""

from __future__ import annotations

import hashlib
from typing import Any

from .nodes import Op
from .snapshot import Snapshot

__all__ = ["digest"]

DIGEST_NBYTES = 16


def digest(snapshot: Snapshot, about: Any) -> str:
    """The name of a snapshot's structure, in hexadecimal.

    Parameters
    ----------
    snapshot : Snapshot
    about : object
        What else tells such structures apart, by its `repr`.
    """
    made = hashlib.blake2b(repr(about).encode(), digest_size=DIGEST_NBYTES)
    numbers: dict[Op, int] = {}
    lines = [repr((snapshot.flags, snapshot.roots))]
    for item in snapshot.items:
        op = item[0]
        if op is None:
            lines.append(f"{item[1]} {item[2]} {item[3].str}")
            continue
        number = numbers.get(op)
        if number is None:  # the first of its kind says what it is
            number = numbers[op] = len(numbers)
            lines.append(f"{number}: {op.kind.name} {op.called} {op!r}")
        lines.append(f"{number} {item[1:]}")
    made.update("\n".join(lines).encode())
    return made.hexdigest()
