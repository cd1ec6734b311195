## Reductions, row programs of several phases and scans down columns on a CPU.
##
##    unit      some vectors side by side (${k.width} lanes each), and the rows of one piece
##    row       the vectors of a row one after the other, then the single columns that are left
##    arrays    the accumulators of all vectors: q0[v], of single columns y0[v]
##    moments   the sums of the first two phases around a guess; the phases pass where it was good
##    depth     rows from `down` on that are folded into one vector after the other
##    bodies    several, each in boxes of its own: rows up to `under`, of the columns from `at` to `stop`,
##              have one of them; first the columns beside whole vectors, then these
<%def name="repeated(lines, deep)">\
% if deep:
                #pragma unroll
                for (int below = 0; below < ${deep.depth}; below++) {
                const ${k.index} i${k.outer_loops[-1][0]} = down + below;
% for line in deep.groups + deep.before + lines:
                ${line}
% endfor
                }
% else:
% for line in lines:
                ${line}
% endfor
% endif
</%def>\
<%def name="strips(wide, single, deep=None)">\
% if k.even and wide:
            #pragma unroll
            for (int v = 0; v < ${k.even}; v++) {
                const ${k.index} j = start + v * ${k.width};
${repeated(wide, deep)}\
            }
% elif k.width > 1 and wide:
            for (${k.index} j = start, v = 0; j < wide; j += ${k.width}, v++) {
${repeated(wide, deep)}\
            }
% endif
% if single:
            for (${k.index} j = wide, v = ${"wide - start" if k.boxed else "0"}; j < end; j++, v++) {
${repeated(single, deep)}\
            }
% endif
</%def>\
<%def name="streamed(b, lines, single, deep)">\
% if b.aligned:
            if (${b.aligned}) {
${lines(b.streamed, single, deep)}\
            } else {
${lines(b.body[0], single, deep)}\
            }
% else:
${lines(b.body[0], single, deep)}\
% endif
</%def>\
<%def name="vectors(wide, single, deep)">\
            for (${k.index} j = edge, v = (edge - start) / ${k.width}; j < rest; j += ${k.width}, v++) {
${repeated(wide, deep)}\
            }
</%def>\
<%def name="pause(p, rows)">\
% if p.pause[0] or p.pause[1]:
            if ((since += ${rows}) >= ${k.pause}) {
            since = 0;
${strips(p.pause[0], p.pause[1])}\
            }
% endif
</%def>\
<%def name="box(b)">\
<% dim = k.outer_loops[-1][0] %>\
% if k.width > 1:
            const ${k.index} edge = min(stop, start + (at - start + ${k.width - 1}) / ${k.width} * ${k.width});
            const ${k.index} rest = edge + (stop - edge) / ${k.width} * ${k.width};
            const ${k.index} left = edge - at, beside = left + stop - rest;
            if (beside > 0)
% else:
            const ${k.index} beside = stop - at;
% endif
            for (${k.index} down = i${dim}; down < under; down++) {
            const ${k.index} i${dim} = down;
% for line in b.groups + b.before:
            ${line}
% endfor
            for (${k.index} number = 0; number < beside; number++) {
                const ${k.index} j = ${"number < left ? at + number : rest + number - left" if k.width > 1 else "at + number"};
                const ${k.index} v = j - start;
% for line in b.body[1]:
                ${line}
% endfor
            }
            }
% if k.width > 1:
            if (edge < rest) {
            ${k.index} down = i${dim};
% if b.depth > 1:
            for (; down + ${b.depth} <= under; down += ${b.depth}) {
${streamed(b, vectors, None, b)}\
            }
% endif
            for (; down < under; down++) {
            const ${k.index} i${dim} = down;
% for line in b.groups + b.before:
            ${line}
% endfor
${streamed(b, vectors, None, None)}\
            }
            }
% endif
</%def>\
<%def name="walk(p)">\
% if not k.boxed and (p.pause[0] or p.pause[1]):
            int since = 0;
% endif
% for dim, begin, end in k.outer_loops[:-1]:
            for (${k.index} i${dim} = ${begin}; i${dim} < ${end}; i${dim}++) {
% endfor
<% dim, begin, end = k.outer_loops[-1] %>\
% if k.boxed:
            ${k.index} under;
            for (${k.index} i${dim} = ${begin}; i${dim} < ${end}; i${dim} = under) {
            under = min(${k.rows_end}, i${dim} + ${k.pause});
            ${k.index} stop;
            for (${k.index} at = start; at < end; at = stop) {
            stop = ${k.run_end};
% for number, b in enumerate(p.bodies):
            ${"else " if number else ""}${f"if ({b.test}) " if b is not p.bodies[-1] else ""}{
% if b.body[1]:
${box(b)}\
% endif
            }
% endfor
            }
${strips(p.pause[0], p.pause[1])}\
            }
% else:
<% b = p.bodies[0] %>\
            ${k.index} down = ${begin};
% if b.depth > 1:
            for (; down + ${b.depth} <= ${end}; down += ${b.depth}) {
${streamed(b, strips, b.body[1], b)}\
${pause(p, b.depth)}\
            }
% endif
            for (${k.index} i${dim} = down; i${dim} < ${end}; i${dim}++) {
% for line in b.groups + b.before:
            ${line}
% endfor
${streamed(b, strips, b.body[1], None)}\
${pause(p, 1)}\
            }
% endif
% for _ in k.outer_loops[:-1]:
            }
% endfor
</%def>\
__kernel void ${k.name}(${k.signature})
{
% for line in k.arrays:
    ${line}
% endfor
    const ${k.index} groups = (n + tile - 1) / tile;
    const ${k.index} units = ${" * ".join(k.row_extents + ["groups"])}${" * chunks" if k.chunked else ""};
    const ${k.index} run = (units + (${k.index})get_global_size(0) - 1) / (${k.index})get_global_size(0);
    const ${k.index} first = (${k.index})get_global_id(0) * run, last = min(first + run, units);
% if k.moments:
    int apart = 0;  // whether samples are from both ends
% endif
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
% if k.moments:
<% m = k.moments %>\
        const ${m.kind} length = (${m.kind})${m.length};
        int fits = 1;
${strips(*m.sample.start)}\
        for (int sample = 0; sample < ${m.samples}; sample++) {
            const ${m.kind} share = 1 / (${m.kind})(sample + 1);
            const ${k.index} i${m.dim} = apart && sample >= ${m.samples // 2} ? ${m.length} - ${m.samples} + sample : sample;
<% b = m.sample.bodies[0] %>\
% for line in b.groups + b.before:
            ${line}
% endfor
${strips(*b.body)}\
        }
        {
${strips(*m.part.start)}\
${walk(m.part)}\
${strips(*m.part.finish)}\
${strips(*m.check)}\
            apart ^= !fits;
        }
% endif
% for p in k.phases:
        {
${strips(p.start[0], p.start[1])}\
% if p.known:
            if (fits) {
${strips(*p.known)}\
            } else {
% endif
${walk(p)}\
% if p.known:
            }
% endif
% for line in p.groups_after:
            ${line}
% endfor
${strips(p.finish[0], p.finish[1])}\
        }
% endfor
    }
}
