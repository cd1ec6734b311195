"""Kernels joined into one launch: the last work-item of the first kernel to finish runs the others.

What a sum of 8 million elements becomes on a CPU, whose launches take 30 to 60 us:

    void part0(...) { ... a result for each piece ... }
    #define get_global_id(dimension) 0
    #define get_global_size(dimension) 1
    void part1(...) { ... the sum of these ... }
    __kernel void reduce_add(..., volatile __global int* done)
    {
        part0(...);
        if (atomic_inc(done) == get_global_size(0) - 1) { *done = 0; part1(...); }
    }
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .arguments import CountArgument
from .kernels import Rendered

__all__ = ["join"]

_ALONE = """\
#define get_global_id(dimension) 0
#define get_global_size(dimension) 1
"""


def join(kernels: Sequence[Rendered]) -> Rendered:
    """One kernel for a CPU that does what these do, one after the other: the first with all of its
    work-items, the others with one."""
    head = tuple(dict.fromkeys([part for rendered in kernels for part in rendered.head]))
    functions, calls, declared = [], [], []
    for number, rendered in enumerate(kernels):
        begin = f"{''.join(rendered.head)}__kernel void {rendered.name}"
        if not rendered.source.startswith(begin):
            raise AssertionError(f"renderer error: {rendered.name} is more than one function")
        functions.append(f"void part{number}{rendered.source[len(begin):]}")
        # Without `restrict`: the second may write where the first has read.
        given = [
            (type_.removesuffix(" restrict"), f"{name}_{number}")
            for type_, name in rendered.parameters
        ]
        calls.append(f"part{number}({', '.join([name for _, name in given])});")
        declared += [f"{type_} {name}" for type_, name in given]
    text = f"""{functions[0]}
{_ALONE}{"".join(functions[1:])}
#undef get_global_id
#undef get_global_size
__kernel void {kernels[0].name}({", ".join(declared)}, volatile __global int* done)
{{
    {calls[0]}
    mem_fence(CLK_GLOBAL_MEM_FENCE);
    if (atomic_inc(done) == (int)get_global_size(0) - 1) {{
        mem_fence(CLK_GLOBAL_MEM_FENCE);
        *done = 0;
        {" ".join(calls[1:])}
    }}
}}
"""
    return replace(
        kernels[0],
        source="".join(head) + text,
        bindings=(*[each for one in kernels for each in one.bindings], CountArgument()),
        dtypes=(*[each for one in kernels for each in one.dtypes], None),
        head=head,
        parameters=(),
    )
