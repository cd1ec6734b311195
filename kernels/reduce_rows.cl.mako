## Reductions, and row programs of several phases, on a CPU, whose lanes run along a folded dimension: one result, or one piece of it, at a time.
##
##    lanes   work-items share the results (and pieces); lanes and independent accumulators, then the rest
##            one by one; lanes are folded last:    v0 v1 v2 v3 -> (v0+v2)(v1+v3) -> one
##            what is left in shorter vectors, where it is much of a row
##            rows of joined arrays: run by run between the seams, the accumulators going on; with several
##            bodies, each in boxes of its own, a run has one of them
##            arg-reductions: values alone, block by block; the best one's position is looked for in the end
##            what is stored past the caches: one by one up to where it is aligned
##            moments: sum and squares of a row in one pass around a guess of its mean, where that was good
##            blocks: some rows at once that read something together (V0[r]), then row by row
<%def name="every_row(b, lines)">\
            #pragma unroll
            for (int r = 0; r < ${b.rows}; r++) {
                const ${k.index} i${b.dim} = upper + r;
% for line in lines:
                ${line}
% endfor
            }
</%def>\
<%def name="pass_over(p)">\
% for dim, begin, end in p.outer_loops:
        for (${k.index} i${dim} = ${begin}; i${dim} < ${end}; i${dim}++) {
% endfor
% if p.run_end:
            ${k.index} stop;
            for (${k.index} at = ${p.begin}; at < ${p.end}; at = stop) {
            stop = ${p.run_end};
            ${k.index} j = at;
% else:
            const ${k.index} stop = ${p.end};
            ${k.index} j = ${p.begin};
% endif
% if p.others:
% for number, b in enumerate([p, *p.others]):
            ${"else " if number else ""}${f"if ({b.test}) " if b.test else ""}{
${loops(p, b)}\
            }
% endfor
% else:
${loops(p, p)}\
% endif
% if p.run_end:
            }
% endif
% for _ in p.outer_loops:
        }
% endfor
</%def>\
<%def name="loops(p, b)">\
% for line in b.groups + b.before:
            ${line}
% endfor
% if b.lead:
            const ${k.index} edge = min(stop, j + (${k.index})${b.lead});
            for (; j < edge; j++) {
% for line in b.scalar_body:
                ${line}
% endfor
            }
% endif
% if k.width > 1:
% if p.pause:
            while (j + ${k.width * p.unroll} <= stop) {
                const ${k.index} pause = min((${k.index})(stop - ${k.width * p.unroll} + 1), (${k.index})(j + ${p.block}));
                for (; j < pause; j += ${k.width * p.unroll}) {
% for lines in b.vector_bodies:
                    {
% for line in lines:
                        ${line}
% endfor
                    }
% endfor
                }
% for line in p.pause:
                ${line}
% endfor
            }
% else:
            for (; j + ${k.width * p.unroll} <= stop; j += ${k.width * p.unroll}) {
% for lines in b.vector_bodies:
                {
% for line in lines:
                    ${line}
% endfor
                }
% endfor
            }
% endif
% if p.unroll > 1:
            for (; j + ${k.width} <= stop; j += ${k.width}) {
% for line in b.single_body:
                ${line}
% endfor
            }
% if p.pause:
% for line in p.pause:
            ${line}
% endfor
% endif
% endif
% endif
% for rest in b.rests:
            for (; j + ${rest.width} <= stop; j += ${rest.width}) {
% for line in rest.body:
                ${line}
% endfor
            }
% endfor
            for (; j < stop; j++) {
% for line in b.scalar_body:
                ${line}
% endfor
            }
% for line in p.settle:
            ${line}
% endfor
</%def>\
__kernel void ${k.name}(${k.signature})
{
    const ${k.index} units = ${" * ".join(k.row_extents + ["1"])}${" * chunks" if k.chunked else ""};
    const ${k.index} run = (units + (${k.index})get_global_size(0) - 1) / (${k.index})get_global_size(0);
% for line in k.once:
    ${line}
% endfor
% if k.blocks:
<% b, p = k.blocks, k.phases[0] %>\
    const ${k.index} even = (run + ${b.rows - 1}) / ${b.rows} * ${b.rows};
    const ${k.index} first = min((${k.index})get_global_id(0) * even, units), last = min(first + even, units);
    ${k.index} unit = first;
    for (; unit + ${b.rows} <= last; unit += ${b.rows}) {
        const ${k.index} row = unit;
% for line in k.decode + b.arrays:
        ${line}
% endfor
        const ${k.index} upper = i${b.dim}, stop = ${p.end};
        ${k.index} j = 0;
${every_row(b, b.start)}\
% if p.compensated:
        while (j + ${b.step} <= stop) {
            const ${k.index} pause = min((${k.index})(stop - ${b.step - 1}), (${k.index})(j + ${b.length}));
            for (; j < pause; j += ${b.step}) {
${every_row(b, p.groups + p.before + b.body)}\
            }
${every_row(b, b.pause)}\
        }
% else:
        for (; j + ${b.step} <= stop; j += ${b.step}) {
${every_row(b, p.groups + p.before + b.body)}\
        }
% endif
        const ${k.index} rest = j;
${every_row(b, p.start + b.taken + p.groups + p.before + [f"for ({k.index} j = rest; j < stop; j++) {{"] + p.scalar_body + ["}"] + p.settle + p.joining + p.shared + p.own)}\
    }
    for (; unit < last; unit++) {
% else:
    const ${k.index} first = (${k.index})get_global_id(0) * run, last = min(first + run, units);
% if k.moments:
    ${k.moments.kind} mean_1 = 0, mean_2 = 0, mean_3 = 0;  // of the last rows
% endif
    for (${k.index} unit = first; unit < last; unit++) {
% endif
% if k.chunked:
        const ${k.index} row = unit / chunks, piece = unit - row * chunks;
        const ${k.index} low = piece * chunk_length, high = min(low + chunk_length, ${k.chunk_extent});
% else:
        const ${k.index} row = unit;
% endif
% for line in k.decode:
        ${line}
% endfor
% if k.moments:
<% m = k.moments %>\
        const ${m.kind} guess = mean_2 + 2 * (mean_2 - mean_3), length = (${m.kind})${m.length};
        ${m.kind} off = 0, squares = 0;
% for line in m.declared:
        ${line}
% endfor
        int fits = unit >= first + 3;
        if (fits) {
% for line in m.part.start:
            ${line}
% endfor
            {
${pass_over(m.part)}\
            }
% for line in m.part.joining:
            ${line}
% endfor
            off = ${m.sums[0]};
            squares = ${m.sums[1]};
% for line in m.taken:
            ${line}
% endfor
            fits = squares < INFINITY && squares <= ${m.most} * (squares - off * (off / length));
        }
% endif
% for p in k.phases:
% for line in p.start:
        ${line}
% endfor
% if p.known:
        if (fits) {
% for line in p.known:
            ${line}
% endfor
        } else {
% endif
        {
${pass_over(p)}\
        }
% for line in p.joining:
        ${line}
% endfor
% if p.known:
        }
% endif
% for line in p.shared:
        ${line}
% endfor
% if p.own:
        {
% for line in p.own:
            ${line}
% endfor
        }
% endif
% endfor
% if k.moments:
        mean_3 = mean_2;
        mean_2 = mean_1;
        mean_1 = ${k.moments.mean};
% endif
    }
}
