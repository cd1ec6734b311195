"""What a compiler says of a kernel: the figures that bars and tables are about."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CompileError", "Figures"]


class CompileError(Exception):
    """A compiler refused a source; the text is its log."""


@dataclass(frozen=True, slots=True)
class Figures:
    """One kernel on one target.

    Attributes
    ----------
    registers : int
        Of a work-item: 32 bits each (NVIDIA, AMD's vector registers); of a hardware thread: 32
        bytes each (Intel).
    spilled_nbytes : int
        Registers that went to memory, of a work-item. Intel's compiler does not tell them from
        `stack_nbytes`.
    stack_nbytes : int
        Private memory of a work-item: arrays that the compiler could not keep in registers.
    local_nbytes : int
        Local memory that the source declares; what is passed as an argument is not in it.
    load_nbytes : int
        The widest load from global memory by a work-item; 0 where there is none.
    """

    registers: int
    spilled_nbytes: int
    stack_nbytes: int
    local_nbytes: int
    load_nbytes: int
