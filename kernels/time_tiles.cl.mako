## Steps over neighbours of each other's results, tile by tile, on a CPU.
##
##    tile    from p to q along each dimension; a work-item walks a contiguous run of tiles
##    stage   what the tile needs of one step: p - h .. q + h, within the step's extents, to local memory or the result
##    input   what the tile needs of an array that goes around, as one piece: before the step that reads it first
##    border  what an update leaves as it was, around its region
<%def name="outer(bounds)">\
% for dim, (low, high) in enumerate(bounds[:-1]):
        for (int i${dim} = ${low}, u${dim} = ${high}; i${dim} < u${dim}; i${dim}++)
% endfor
</%def>\
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void ${k.name}(${k.signature})
{
% for array in k.arrays:
    ${array};
% endfor
% for dim, (length, extent) in enumerate(zip(k.lengths, k.extents)):
    const int w${dim} = (${extent} + ${length} - 1) / ${length};
% endfor
    const int tiles = ${" * ".join(f"w{dim}" for dim in range(k.last + 1))};
    const int run = (tiles + (int)get_global_size(0) - 1) / (int)get_global_size(0);
    const int first = (int)get_global_id(0) * run, end = min(first + run, tiles);
    for (int place = first; place < end; place++) {
        int rest = place;
% for dim in range(k.last, -1, -1):
        const int p${dim} = rest % w${dim} * ${k.lengths[dim]}, q${dim} = min(p${dim} + ${k.lengths[dim]}, ${k.extents[dim]});
% if dim:
        rest /= w${dim};
% endif
% endfor
% for s in k.stages:
% for c in s.inputs:
${outer(c.bounds)}\
        {
            const int low = ${c.bounds[-1][0]}, high = ${c.bounds[-1][1]};
% for line in c.rows:
            ${line}
% endfor
            int j;
% for first, last, moved in c.runs:
            j = ${first};
% if c.vector:
            for (; j + ${c.width} <= ${last}; j += ${c.width}) ${c.vector(moved)}
% endif
            for (; j < ${last}; j++) ${c.scalar(moved)}
% endfor
        }
% endfor
${outer(s.bounds)}\
        {
            int j = ${s.bounds[-1][0]};
            const int high = ${s.bounds[-1][1]};
% for line in s.groups + s.before:
            ${line}
% endfor
% if s.body:
            // The last vector begins early enough to end with the row: some elements are computed twice.
            if (j + ${s.width} <= high) for (; j < high; j += ${s.width}) {
                j = min(j, high - ${s.width});
% for line in s.body:
                ${line}
% endfor
            }
            else
% endif
            for (; j < high; j++) {
% for line in s.scalar_body:
                ${line}
% endfor
            }
        }
% for b in s.borders:
        if (${" || ".join(f"{low} < {first} || {high} > {last}" for (low, high), (first, last) in zip(b.bounds, b.box))})
${outer(b.bounds)}\
        {
            const int low = ${b.bounds[-1][0]}, high = ${b.bounds[-1][1]};
% for line in b.rows:
            ${line}
% endfor
% if k.last:
            const bool within = ${" && ".join(f"i{dim} >= {first} && i{dim} < {last}" for dim, (first, last) in enumerate(b.box[:-1]))};
% else:
            const bool within = true;
% endif
            const int left = within ? min(high, ${b.box[-1][0]}) : high;
            for (int j = low; j < left; j++) ${b.copy}
            for (int j = max(left, within ? ${b.box[-1][1]} : high); j < high; j++) ${b.copy}
        }
% endfor
% for c in s.copied:
${outer(c.bounds)}\
        {
            int j = ${c.bounds[-1][0]};
            const int high = ${c.bounds[-1][1]};
% for line in c.rows:
            ${line}
% endfor
% if c.vector:
            for (; j + ${c.width} <= high; j += ${c.width}) ${c.vector}
% endif
            for (; j < high; j++) ${c.scalar}
        }
% endfor
% endfor
    }
}
