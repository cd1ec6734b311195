## Reductions, and row programs of several phases, on a GPU: ${k.deep} work-items of a group fold one result, or one piece of it.
##
##    rows      these are neighbours, and a group has ${k.beside} results below each other
##    columns   neighbours have neighbouring columns, ${k.beside} of them, and take every so many-th element
##    bodies    several, each in boxes of its own: an element has one of them
##    held      elements stay in registers (h0) from one phase to the next: the loops are written out
##    tree      what they have folded, put together in local memory: every one of them knows the result
<%def name="element(p)">\
% for number, b in enumerate(p.bodies):
% if len(p.bodies) > 1:
                ${"else " if number else ""}${f"if ({b.test}) " if b is not p.bodies[-1] else ""}{
% endif
% for line in b.lines:
                ${line}
% endfor
% if len(p.bodies) > 1:
                }
% endif
% endfor
</%def>\
__kernel void ${k.name}(${k.signature})
{
% for line in k.local_memory:
    ${line}
% endfor
    const int lid = get_local_id(0);
% if k.columns:
    const int item = lid / ${k.beside}, across = lid % ${k.beside};
    const ${k.index} blocks = (n + ${k.beside - 1}) / ${k.beside};
    const ${k.index} units = ${" * ".join(k.row_extents + ["blocks"])}${" * chunks" if k.chunked else ""};
% else:
    const int item = lid % ${k.deep}, across = lid / ${k.deep};
    const ${k.index} results = ${" * ".join(k.row_extents + ["1"])}${" * chunks" if k.chunked else ""};
    const ${k.index} units = (results + ${k.beside - 1}) / ${k.beside};
% endif
    for (${k.index} unit = get_group_id(0); unit < units; unit += (${k.index})get_num_groups(0)) {
% if k.columns:
        const ${k.index} number = unit / blocks, column = (unit - number * blocks) * ${k.beside} + across;
        const int exists = column < n;
        const ${k.index} j = min(column, (${k.index})(n - 1));
% elif k.beside > 1:
        const ${k.index} wanted = unit * ${k.beside} + across, number = min(wanted, (${k.index})(results - 1));
        const int exists = wanted < results;
% else:
        const ${k.index} number = unit;
        const int exists = 1;
% endif
% if k.chunked:
        const ${k.index} row = number / chunks, piece = number - row * chunks;
        const ${k.index} low = piece * chunk_length, high = min(low + chunk_length, ${k.chunk_extent});
% else:
        const ${k.index} row = number;
% endif
% for line in k.decode:
        ${line}
% endfor
        const ${k.index} length = exists ? ${k.length} : 0;
% for line in k.held_arrays:
        ${line}
% endfor
% for p in k.phases:
% for line in p.start:
        ${line}
% endfor
% if k.held:
        #pragma unroll
        for (int nth = 0; nth < ${k.held}; nth++) {
            const ${k.index} t = item + nth * ${k.deep};
            if (${k.is_inside}) {
% else:
        for (${k.index} t = item; t < length; t += ${k.deep}) {
% endif
% for line in k.decode_reduced:
                ${line}
% endfor
% if k.seams:
                const ${k.index} at = j;
% endif
${element(p)}\
% if k.held:
            }
% endif
        }
% for line in p.tree + p.shared:
        ${line}
% endfor
        if (exists && item == 0) {
% for line in p.own:
            ${line}
% endfor
        }
% endfor
% if k.waits:
        barrier(CLK_LOCAL_MEM_FENCE);
% endif
    }
}
