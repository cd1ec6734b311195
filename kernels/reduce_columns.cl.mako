## Reductions whose lanes run along a kept dimension: ${k.width} neighbouring results at a time.
##
##    a work-item takes results j .. j + lanes and walks down the folded dimensions, so loads are contiguous
##    both schedules; on a GPU a lane is a work-item
${k.head}\
__kernel void ${k.name}(${k.signature})
{
    const ${k.index} groups = (n + ${k.width - 1}) / ${k.width};
    const ${k.index} units = ${" * ".join(k.row_extents + ["groups"])}${" * chunks" if k.chunked else ""};
% if k.schedule == "cpu":
    const ${k.index} run = (units + (${k.index})get_global_size(0) - 1) / (${k.index})get_global_size(0);
    const ${k.index} first = (${k.index})get_global_id(0) * run, last = min(first + run, units);
    for (${k.index} unit = first; unit < last; unit++) {
% else:
    for (${k.index} unit = get_global_id(0); unit < units; unit += (${k.index})get_global_size(0)) {
% endif
        const ${k.index} across = unit / groups;
        ${k.index} j = (unit - across * groups) * ${k.width};
% if k.chunked:
        const ${k.index} row = across / chunks, piece = across - row * chunks;
        const ${k.index} low = piece * chunk_length, high = min(low + chunk_length, ${k.chunk_extent});
% else:
        const ${k.index} row = across;
% endif
% for line in k.decode:
        ${line}
% endfor
% for width, phases in k.versions:
% if width > 1:
        if (j + ${width} <= n) {
% elif k.width > 1:
        else for (; j < n; j++) {
% else:
        {
% endif
% for p in phases:
% for line in p.start:
            ${line}
% endfor
% for dim, begin, end in k.outer_loops:
            for (${k.index} i${dim} = ${begin}; i${dim} < ${end}; i${dim}++) {
% endfor
% for line in p.groups + p.before + p.body:
                ${line}
% endfor
% for _ in k.outer_loops:
            }
% endfor
% for line in p.finish:
            ${line}
% endfor
% endfor
        }
% endfor
    }
}
