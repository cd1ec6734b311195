## Scans along a row: every element becomes the fold of itself and all before it.
##
##    unit    a row, or a piece of one that starts from the folds of the pieces before it
##    CPU     work-items share the units; ${k.width} lanes of a vector are neighbours, then one by one
##    GPU     a work-group shares a unit and takes it ${k.group} neighbours at a time
__kernel void ${k.name}(${k.signature})
{
% for line in k.local_memory:
    ${line}
% endfor
    const ${k.index} units = ${" * ".join(k.row_extents + ["1"])}${" * chunks" if k.chunked else ""};
% if k.schedule == "cpu":
    const ${k.index} run = (units + (${k.index})get_global_size(0) - 1) / (${k.index})get_global_size(0);
    const ${k.index} first = (${k.index})get_global_id(0) * run, last = min(first + run, units);
    for (${k.index} unit = first; unit < last; unit++) {
% else:
    const int lane = get_local_id(0);
    for (${k.index} unit = get_group_id(0); unit < units; unit += (${k.index})get_num_groups(0)) {
% endif
% if k.chunked:
        const ${k.index} row = unit / chunks, piece = unit - row * chunks;
        const ${k.index} low = piece * chunk_length, high = min(low + chunk_length, ${k.extent});
% else:
        const ${k.index} row = unit, low = 0, high = ${k.extent};
% endif
% for line in k.decode + k.groups + k.before + k.start:
        ${line}
% endfor
% if k.schedule == "cpu":
        ${k.index} j = low;
% if k.width > 1:
        for (; j + ${k.width} <= high; j += ${k.width}) {
% for line in k.vector_body:
            ${line}
% endfor
        }
% endif
        for (; j < high; j++) {
% for line in k.scalar_body:
            ${line}
% endfor
        }
% else:
        for (${k.index} tile = low; tile < high; tile += ${k.group}) {
            const int active = tile + lane < high;
            const ${k.index} j = active ? tile + lane : high - 1;
% for line in k.scalar_body:
            ${line}
% endfor
            if (active) {
% for line in k.stores:
                ${line}
% endfor
            }
        }
% endif
    }
}
