"""Two kernels as one launch: the work-item that is the last to be done with the first runs all of
the second; `planned` joins what the plan says follows.

What a sum of 8 million elements becomes on a CPU, whose launches take 30 to 60 us:

    void first(...) { ... a result for each piece ... }
    #define get_global_id(dimension) 0
    #define get_global_size(dimension) 1
    void second(...) { ... the sum of these ... }
    __kernel void reduce_add(..., volatile __global int* done)
    {
        first(...);
        if (atomic_inc(done) == get_global_size(0) - 1) { *done = 0; second(...); }
    }
"""

from __future__ import annotations

from dataclasses import replace

from .arguments import CountArgument
from .kernels import Rendered

__all__ = ["join"]

_ALONE = """\
#define get_global_id(dimension) 0
#define get_global_size(dimension) 1
"""


def join(first: Rendered, second: Rendered) -> Rendered:
    """One kernel for a CPU that does what these do, one after the other."""
    head = (*first.head, *[part for part in second.head if part not in first.head])
    names, passed, declared = ("before", "after"), [], []
    functions = []
    for number, rendered in enumerate((first, second)):
        begin = f"{''.join(rendered.head)}__kernel void {rendered.name}"
        if not rendered.source.startswith(begin):
            raise AssertionError(f"renderer error: {rendered.name} is more than one function")
        functions.append(f"void {names[number]}{rendered.source[len(begin):]}")
        passed.append(", ".join([f"{name}_{number}" for _, name in rendered.parameters]))
        # Without `restrict`: the second may write where the first has read.
        declared += [
            f"{type_.removesuffix(' restrict')} {name}_{number}"
            for type_, name in rendered.parameters
        ]
    text = f"""{functions[0]}
{_ALONE}{functions[1]}
#undef get_global_id
#undef get_global_size
__kernel void {first.name}({", ".join(declared)}, volatile __global int* done)
{{
    {names[0]}({passed[0]});
    mem_fence(CLK_GLOBAL_MEM_FENCE);
    if (atomic_inc(done) == (int)get_global_size(0) - 1) {{
        mem_fence(CLK_GLOBAL_MEM_FENCE);
        *done = 0;
        {names[1]}({passed[1]});
    }}
}}
"""
    return replace(
        first,
        source="".join(head) + text,
        bindings=(*first.bindings, *second.bindings, CountArgument()),
        dtypes=(*first.dtypes, *second.dtypes, None),
        head=head,
        parameters=(),
    )
