## Elements that are stored at computed places, or combined with what lies there by atomic operations.
##
##    unit    an element; work-items stride over all of them
__kernel void ${k.name}(${k.signature})
{
    const ${k.index} rows = ${" * ".join(k.row_extents) or "1"};
% for line in k.declared:
    ${line}
% endfor
    for (${k.index} unit = get_global_id(0); unit < rows * n; unit += (${k.index})get_global_size(0)) {
        const ${k.index} number = ${"rows * n - 1 - unit" if k.backwards else "unit"};
        const ${k.index} row = number / n, j = number - row * n;
% for line in k.decode + k.groups + k.before + k.body:
        ${line}
% endfor
% if k.test:
        if (${k.test})
% endif
        {
            __global ${k.memory} *place = ${k.place};
% for line in k.value + k.store:
            ${line}
% endfor
        }
    }
% for line in k.settled:
    ${line}
% endfor
}
