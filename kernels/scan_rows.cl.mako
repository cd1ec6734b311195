## Scans along a row on a CPU: every element becomes the fold of itself and all before it.
##
##    unit    a row, or a piece of one that starts from the folds of the pieces before it
##    lanes   work-items share the units; ${k.width} lanes of a vector are neighbours, then one by one
##    bodies  several, each in boxes of its own: run by run between the seams, the folds going on
__kernel void ${k.name}(${k.signature})
{
    const ${k.index} units = ${" * ".join(k.row_extents + ["1"])}${" * chunks" if k.chunked else ""};
    const ${k.index} run = (units + (${k.index})get_global_size(0) - 1) / (${k.index})get_global_size(0);
    const ${k.index} first = (${k.index})get_global_id(0) * run, last = min(first + run, units);
    for (${k.index} unit = first; unit < last; unit++) {
% if k.chunked:
        const ${k.index} row = unit / chunks, piece = unit - row * chunks;
        const ${k.index} low = piece * chunk_length, high = min(low + chunk_length, ${k.extent});
% else:
        const ${k.index} row = unit, low = 0, high = ${k.extent};
% endif
% for line in k.decode + k.start:
        ${line}
% endfor
% if k.run_end:
        ${k.index} stop;
        for (${k.index} at = low; at < high; at = stop) {
        stop = ${k.run_end};
        ${k.index} j = at;
% else:
        const ${k.index} stop = high;
        ${k.index} j = low;
% endif
% for number, b in enumerate(k.bodies):
        ${"else " if number else ""}${f"if ({b.test}) " if b.test else ""}{
% for line in b.groups + b.before:
            ${line}
% endfor
% if b.lead:
            // Element by element up to where the result is aligned, then vectors, then the rest.
            const ${k.index} edge = min(stop, j + (${k.index})${b.lead});
            for (int part = 0; part < 2; part++) {
            const ${k.index} end = part ? stop : edge;
            if (part)
% endif
% if k.width > 1:
            for (; j + ${k.width} <= stop; j += ${k.width}) {
% for line in b.vector_body:
                ${line}
% endfor
            }
% endif
            for (; j < ${"end" if b.lead else "stop"}; j++) {
% for line in b.scalar_body:
                ${line}
% endfor
            }
% if b.lead:
            }
% endif
        }
% endfor
% if k.run_end:
        }
% endif
    }
}
