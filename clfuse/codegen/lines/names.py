"""The families of names in a kernel: which letters each of them has.

A name is the letters of its family and a number. No two families have the same letters, so that two
generators cannot make one name. Templates and folds have names of their own: `FAMILIES` lists them
all.
"""

from __future__ import annotations

from typing import Final

LOOP: Final = "r"
"""Registers in loops."""

UNIFORM: Final = "c"
"""Registers that are the same for all lanes, made before a loop."""

EPILOGUE: Final = "f"
"""Registers of an epilogue, whose constants are arguments each of its own."""

AHEAD: Final = "ahead"
"""The index of what a gather asks for before it comes to it, and its registers."""

GROUP: Final = "x"
"""Sums of index terms."""

JUMP: Final = "t"
"""What the index terms of a run get or do not get: 0 or a `FAR`."""

WITHIN: Final = "within"
"""Truths: whether a limited access has an element here."""

SEAM: Final = "seam"
"""Arguments: indices at which joined arrays meet."""

FAR: Final = "far"
"""Arguments: distances that a jump adds."""

ROUNDS: Final = "rounds"
"""Arguments: how often the steps of a loop of registers are done."""

CARRY: Final = "carry"
"""Registers that one round of such a loop leaves to the next."""

TABLE: Final = "table"
"""Arrays of the numbers that the rounds of such a loop read, one each."""

FAMILIES: Final[dict[str, str]] = {
    LOOP: "registers in loops",
    UNIFORM: "registers before loops",
    EPILOGUE: "registers of epilogues",
    AHEAD: "registers of what is asked for ahead",
    GROUP: "sums of index terms",
    JUMP: "jumps at seams",
    WITHIN: "limits",
    SEAM: "arguments: seams",
    FAR: "arguments: jumps",
    ROUNDS: "arguments: rounds of loops of registers",
    f"{CARRY}{LOOP}": "carried registers of loops (carryr3_1)",
    f"{CARRY}{UNIFORM}": "carried registers before loops",
    f"{CARRY}{EPILOGUE}": "carried registers of epilogues",
    f"{CARRY}u": "carried registers of the second vector",
    TABLE: "numbers of the rounds of loops of registers",
    "a": "arguments: buffers",
    "k": "arguments: constants",
    "o": "arguments: offsets",
    "n": "arguments: extents",
    "s": "arguments: strides (s0_1); local memory of folds (s0)",
    "v": "arguments: strides along the lanes (v0); vectors of folds (v0_1)",
    "tq": "totals of sums",
    "eq": "errors of sums",
    "tv": "totals of vectors of sums",
    "ev": "errors of vectors of sums",
    "tV": "totals of vectors of sums, in blocks of rows",
    "eV": "errors of vectors of sums, in blocks of rows",
    "i": "indices",
    "rest": "what is left of a running number",
    "over": "what is left of a running number of folded elements",
    "h": "arrays of hoisted and carried registers; halves of vectors (h0_4)",
    "q": "folds, carries of scans, ends of tiles",
    "z": "positions of folds, neutral elements of scans",
    "l": "lanes of folds, lengths of tiles",
    "m": "positions of lanes, extents of tiles",
    "p": "positions in vectors (p0_1), beginnings of tiles (p0)",
    "g": "positions of halves",
    "e": "ends of boxes",
    "b": "best values of searches (b0), beginnings of boxes (b0_1), rows of blocks",
    "u": "operands of scans, sums of searches",
    "w": "shifted operands, totals of vectors, elements on their way to memory",
    "y": "positions in local memory, rows of scratch",
    "fold": "folds of other passes and pieces",
    "folds": "folds of a group's work-items, in local memory",
    "own": "folds of a work-item's elements of a tile",
    "all": "folds of tiles",
    "lead": "arguments: elements before the first vector of a row",
    "finite": "whether what all rows read is finite",
    "none": "sums that are NaN where an operand is none or infinite",
    "j": "indices along the lanes",
    "V": "vectors of folds, in blocks of rows",
    "P": "positions in vectors, in blocks of rows",
    "U": "sums of searches, in blocks of rows",
    "t_": "vectors that were turned",
    "bits": "lanes that are selected",
    "upto": "how many lanes up to there are selected",
    "before": "how many lanes before there are selected",
    "found": "positions of halves that were found",
    "tile": "scratch of tiles, tiles in local memory",
    "pitch": "arguments: strides of scratch",
    "part": "kernels that were joined",
}
"""Every family of numbered names, and what its names stand for."""
