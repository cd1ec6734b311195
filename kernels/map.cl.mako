## Element-wise kernels: every output element depends on the inputs at its own index (through views).
##
##    unit    a row of the last dimension, or a piece of a row
##    CPU     each work-item walks a contiguous run of units in vectors of ${k.width} lanes, then the rest one by one
##    GPU     work-items stride over the vectors of all rows, then over what is left of each row
${k.head}\
__kernel void ${k.name}(${k.signature})
{
% if k.schedule == "cpu":
% if k.whole_rows:
    const ${k.index} units = ${" * ".join(k.row_extents)};
% elif k.rows:
    const ${k.index} units = ${" * ".join(k.row_extents)} * pieces;
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
        const ${k.index} row = unit, low = 0, high = n;
% else:
        const ${k.index} row = unit / pieces, low = (unit - row * pieces) * piece;
        const ${k.index} high = min(low + piece, n);
% endif
% for line in k.decode + k.groups + k.before:
        ${line}
% endfor
        ${k.index} j = low;
% if k.lead:
        // Element by element up to where the result is aligned, then vectors, then the rest.
        const ${k.index} edge = min(high, low + (${k.index})${k.lead});
        for (int part = 0; part < 2; part++) {
        const ${k.index} stop = part ? high : edge;
        if (part)
% endif
% if k.width > 1:
        for (; j + ${k.width} <= high; j += ${k.width}) {
% if k.hoisted:
            const ${k.index} v = j / ${k.width};
% endif
% for line in k.vector_body:
            ${line}
% endfor
        }
% endif
        for (; j < ${"stop" if k.lead else "high"}; j++) {
% if k.hoisted:
            const ${k.index} v = j - wide;
% endif
% for line in k.scalar_body:
            ${line}
% endfor
        }
% if k.lead:
        }
% endif
    }
% else:
    const ${k.index} id = get_global_id(0), step = get_global_size(0);
% if k.rows:
    const ${k.index} rows = ${" * ".join(k.row_extents)};
% else:
    const ${k.index} rows = 1;
% endif
% if k.width > 1:
    const ${k.index} vectors = n / ${k.width}, rest = n - vectors * ${k.width};
    for (${k.index} v = id; v < rows * vectors; v += step) {
        const ${k.index} row = v / vectors, j = (v - row * vectors) * ${k.width};
% for line in k.decode + k.groups + k.before:
        ${line}
% endfor
% for line in k.vector_body:
        ${line}
% endfor
    }
% else:
    const ${k.index} vectors = 0, rest = n;
% endif
    for (${k.index} v = id; v < rows * rest; v += step) {
        const ${k.index} row = v / rest, j = vectors * ${k.width} + v - row * rest;
% for line in k.decode + k.groups + k.before:
        ${line}
% endfor
% for line in k.scalar_body:
        ${line}
% endfor
    }
% endif
}
