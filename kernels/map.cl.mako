## Element-wise kernels: every output element depends on the inputs at its own index (through views).
##
##    unit    a row of the last dimension, or a piece of a row
##    CPU     each work-item walks a contiguous run of units in vectors of ${k.width} lanes, then the rest one by one
##    tile    some rows of a piece, then the same rows of the next one: loads across the rows find their lines cached
##    block   as many rows of a tile as columns: loads across the rows are vectors down the columns, turned
##    GPU     a work-item takes a vector of a row, or an element that is left of it; rows are the second dimension
##    lead    elements of a row before the first one that lies at a multiple of a vector's size
##    seam    where loads go elsewhere from an index on (joined arrays): a CPU walks a row run by run between
##            seams, for a GPU every element is a run; what operations a run needs may depend on where it lies
<%def name="head(b)">\
% for line in b.groups + b.before:
        ${line}
% endfor
</%def>\
<%def name="loops(b)">\
% if b.lead:
        // Element by element up to where the result is aligned, then vectors, then the rest.
        const ${k.index} edge = min(high, j + (${k.index})${b.lead});
        for (int part = 0; part < 2; part++) {
        const ${k.index} stop = part ? high : edge;
        if (part)
% endif
% for lanes, lines in b.blocks:
% if b.overlaps:
        // The last vector begins early enough to end with the run: some elements are stored twice.
        if (j + ${lanes} <= high) for (; j < high; j += ${lanes}) {
            j = min(j, (${k.index})(high - ${lanes}));
% else:
% if b.lead and not loop.first:
        if (part)
% endif
        for (; j + ${lanes} <= high; j += ${lanes}) {
% if k.hoisted:
            const ${k.index} v = j / ${b.width};
% endif
% endif
% for line in lines:
            ${line}
% endfor
        }
% if b.overlaps:
        else
% endif
% endfor
        for (; j < ${"stop" if b.lead else "high"}; j++) {
% if k.hoisted:
            const ${k.index} v = j - wide;
% endif
% for line in b.scalar_body:
            ${line}
% endfor
        }
% if b.lead:
        }
% endif
</%def>\
<%def name="scalar(b)">\
% for line in b.scalar_body:
        ${line}
% endfor
</%def>\
<%def name="vectors(b)">\
% if b.blocks:
% for line in b.blocks[0][1]:
        ${line}
% endfor
% else:
        for (${k.index} lane = j, j = lane; j < lane + ${k.width}; j++) {
% for line in b.scalar_body:
            ${line}
% endfor
        }
% endif
</%def>\
<%def name="bodies(part)">\
% if len(k.bodies) == 1:
${head(k.bodies[0])}\
${part(k.bodies[0])}\
% else:
% for number, b in enumerate(k.bodies):
        ${"else " if number else ""}${f"if ({b.test}) " if b.test else ""}{
${head(b)}\
${part(b)}\
        }
% endfor
% endif
</%def>\
__kernel void ${k.name}(${k.signature})
{
% if k.schedule == "cpu":
% if k.whole_rows:
    const ${k.index} units = ${" * ".join(k.row_extents)};
% elif k.rows:
% if k.tile_rows:
    const ${k.index} rows = ${" * ".join(k.row_extents)};
    const ${k.index} units = (rows + ${k.tile_rows - 1}) / ${k.tile_rows} * pieces;
% else:
    const ${k.index} units = ${" * ".join(k.row_extents)} * pieces;
% endif
% else:
    const ${k.index} units = pieces;
% endif
    const ${k.index} run = (units + (${k.index})get_global_size(0) - 1) / (${k.index})get_global_size(0);
    const ${k.index} first = (${k.index})get_global_id(0) * run, last = min(first + run, units);
% if k.hoisted:
    // What is the same in every row.
% for line in k.hoisted.arrays + k.hoisted.before:
    ${line}
% endfor
    const ${k.index} wide = n - n % ${k.width};
    for (${k.index} j = 0, v = 0; j < wide; j += ${k.width}, v++) {
% for line in k.hoisted.loops[0]:
        ${line}
% endfor
    }
    for (${k.index} j = wide, v = 0; j < n; j++, v++) {
% for line in k.hoisted.loops[1]:
        ${line}
% endfor
    }
% endif
    for (${k.index} unit = first; unit < last; unit++) {
% if k.whole_rows:
        const ${k.index} row = unit, low = 0, end = n;
% else:
% if k.tile_rows:
        const ${k.index} down = unit / pieces, low = (unit - down * pieces) * piece;
        const ${k.index} until = min((down + 1) * ${k.tile_rows}, rows);
% if k.block:
        for (${k.index} top = down * ${k.tile_rows}, tall; top < until; top += tall) {
        ${k.index} wide = low;
        const int together = top + ${k.block.size} <= until${f" && top % {k.together} + {k.block.size} <= {k.together}" if k.together else ""};
        tall = together ? ${k.block.size} : 1;
        if (together)
        for (; wide + ${k.block.size} <= min(low + piece, n); wide += ${k.block.size}) {
            const ${k.index} j = wide;
% for line in k.block.declared:
            ${line}
% endfor
            {
            const ${k.index} row = top;
% for line in k.decode + k.bodies[0].groups + k.block.loads:
            ${line}
% endfor
            }
% if k.block.unrolled:
            #pragma unroll
% endif
            for (int r = 0; r < ${k.block.size}; r++) {
            const ${k.index} row = top + r;
% for line in k.decode:
            ${line}
% endfor
${head(k.bodies[0])}\
% for line in k.block.row:
            ${line}
% endfor
            }
        }
        for (${k.index} row = top; row < top + tall; row++) {
% else:
        for (${k.index} row = down * ${k.tile_rows}; row < until; row++) {
% endif
% else:
        const ${k.index} row = unit / pieces, low = (unit - row * pieces) * piece;
% endif
        const ${k.index} end = min(low + piece, n);
% endif
% for line in k.decode:
        ${line}
% endfor
% if k.run_end:
        ${k.index} high;
        for (${k.index} at = low; at < end; at = high) {
        high = ${k.run_end};
        ${k.index} j = at;
% else:
        const ${k.index} high = end;
        ${k.index} j = ${"wide" if k.block else "low"};
% endif
${bodies(loops)}\
% if k.run_end:
        }
% endif
% if k.tile_rows:
        }
% endif
% if k.block:
        }
% endif
    }
% else:
    const ${k.index} item = get_global_id(0);
% for line in k.opening:
    ${line}
% endfor
% if k.width > 1:
% if k.lead:
    const int lead = ${k.lead};
    const ${k.index} vectors = (n - lead) / ${k.width};
% else:
    const ${k.index} vectors = n / ${k.width};
% endif
    if (item < vectors) {
        const ${k.index} j = ${"lead + " if k.lead else ""}item * ${k.width};
${bodies(vectors)}\
    } else {
% if k.lead:
        const ${k.index} j = item - vectors < lead ? item - vectors : item + vectors * ${k.width - 1};
% else:
        const ${k.index} j = item + vectors * ${k.width - 1};
% endif
        if (j < n) {
${bodies(scalar)}\
        }
    }
% else:
    const ${k.index} j = item;
    if (j < n) {
% if k.run_end:
        const ${k.index} at = j;
% endif
${bodies(scalar)}\
    }
% endif
% for _ in range(sum(line.endswith("{") for line in k.opening)):
    }
% endfor
% endif
}
