## Reductions, row programs of several phases and scans down columns on a CPU.
##
##    unit      some vectors side by side (${k.width} lanes each), and the rows of one piece
##    row       the vectors of a row one after the other, then the single columns that are left
##    arrays    the accumulators of all vectors: q0[v], of single columns y0[v]
<%def name="strips(wide, single)">\
% if k.even and wide:
            #pragma unroll
            for (int v = 0; v < ${k.even}; v++) {
                const ${k.index} j = start + v * ${k.width};
% for line in wide:
                ${line}
% endfor
            }
% elif k.width > 1 and wide:
            for (${k.index} j = start, v = 0; j < wide; j += ${k.width}, v++) {
% for line in wide:
                ${line}
% endfor
            }
% endif
% if single:
            for (${k.index} j = wide, v = 0; j < end; j++, v++) {
% for line in single:
                ${line}
% endfor
            }
% endif
</%def>\
${k.head}\
__kernel void ${k.name}(${k.signature})
{
% for line in k.arrays:
    ${line}
% endfor
    const ${k.index} groups = (n + tile - 1) / tile;
    const ${k.index} units = ${" * ".join(k.row_extents + ["groups"])}${" * chunks" if k.chunked else ""};
    const ${k.index} run = (units + (${k.index})get_global_size(0) - 1) / (${k.index})get_global_size(0);
    const ${k.index} first = (${k.index})get_global_id(0) * run, last = min(first + run, units);
    for (${k.index} unit = first; unit < last; unit++) {
        const ${k.index} across = unit / groups;
        const ${k.index} start = (unit - across * groups) * tile;
% if not k.even:
        const ${k.index} end = min(start + tile, n);
        const ${k.index} wide = ${f"end - (end - start) % {k.width}" if k.width > 1 else "start"};
% endif
% if k.chunked:
        const ${k.index} row = across / chunks, piece = across - row * chunks;
        const ${k.index} low = piece * chunk_length, high = min(low + chunk_length, ${k.chunk_extent});
% else:
        const ${k.index} row = across;
% endif
% for line in k.decode:
        ${line}
% endfor
% for p in k.phases:
        {
${strips(p.start[0], p.start[1])}\
% if p.pause[0] or p.pause[1]:
            int since = 0;
% endif
% for dim, begin, end in k.outer_loops:
            for (${k.index} i${dim} = ${begin}; i${dim} < ${end}; i${dim}++) {
% endfor
% for line in p.groups + p.before:
            ${line}
% endfor
${strips(p.body[0], p.body[1])}\
% if p.pause[0] or p.pause[1]:
            if (++since == ${k.pause}) {
            since = 0;
${strips(p.pause[0], p.pause[1])}\
            }
% endif
% for _ in k.outer_loops:
            }
% endfor
% for line in p.groups_after:
            ${line}
% endfor
${strips(p.finish[0], p.finish[1])}\
        }
% endfor
    }
}
