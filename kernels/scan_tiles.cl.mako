## Scans along rows on a GPU: a work-group takes a row, or a piece of one, tile by tile.
##
##    tile        ${k.group} work-items with ${k.each} elements each, in local memory
##    s, folds    the elements of a tile, and the folds of its work-items
##    q           the fold of all that comes before the tile, the same for all work-items
##    look back   every tile has a group; tickets number them in the order in which they begin, and a
##                group finds what comes before its tile by the words that others leave
##    bodies      several, each in boxes of its own: an element has one of them
<%def name="elements(part)">\
        for (int slot = 0; slot < ${k.each}; slot++) {
            const int place = slot * ${k.group} + lane;
            const ${k.index} j = tile + place;
% if part == "first":
% for line in k.declared:
            ${line}
% endfor
% endif
            if (j < high) {
% if k.has_seams:
                const ${k.index} at = j;
% endif
% if k.is_plain:
% for line in getattr(k.bodies[0], part):
                ${line}
% endfor
% else:
% for number, b in enumerate(k.bodies):
                ${"else " if number else ""}${f"if ({b.test}) " if b.test else ""}{
% for line in b.groups + b.before + getattr(b, part):
                    ${line}
% endfor
                }
% endfor
% endif
            }
% if part == "first":
% for f in k.folds:
            s${f.number}[place + place / ${f.pad}] = u${f.number};
% endfor
% endif
        }
</%def>\
<%def name="read(f, words, tile)">\
<% names = ", ".join(f"w{part}" for part in range(f.words)) %>\
            uint ${names};
% for part in range(f.words):
            while (((w${part} = *(volatile __global uint *)(${words[part]} + ${tile})) >> 16) == 0);
% endfor
</%def>\
<%def name="write(f, words)">\
% for part in range(f.words):
            atomic_xchg((volatile __global uint *)(${words[part]} + unit), 0x10000u | ${f.parts[part]});
% endfor
</%def>\
__kernel void ${k.name}(${k.signature})
{
% for f in k.folds:
    __local ${f.type} s${f.number}[${f.elements}], folds${f.number}[${k.group}];
% endfor
    const int lane = get_local_id(0);
    const ${k.index} units = ${" * ".join(k.row_extents + ["1"])}${" * chunks" if k.chunked else ""};
% if k.looks_back:
    __local int ticket, nearest;
    if (lane == 0)
        ticket = (int)atomic_inc((volatile __global uint *)${k.state});
    barrier(CLK_LOCAL_MEM_FENCE);
    const ${k.index} unit = ticket;
    {
% else:
    for (${k.index} unit = get_group_id(0); unit < units; unit += (${k.index})get_num_groups(0)) {
% endif
% if k.chunked:
        const ${k.index} row = unit / chunks, piece = unit - row * chunks;
        const ${k.index} low = piece * chunk_length, high = min(low + chunk_length, ${k.extent});
% else:
        const ${k.index} row = unit, low = 0, high = ${k.extent};
% endif
% for line in k.decode:
        ${line}
% endfor
% for f in k.folds:
        ${f.type} q${f.number} = ${f.identity};
% endfor
% if k.chunked and not k.looks_back:
        for (${k.index} before = lane; before < piece; before += ${k.group}) {
% for f in k.folds:
            const ${f.type} fold${f.number} = ${f.partial};
            q${f.number} = ${f.combined(f"q{f.number}", f"fold{f.number}")};
% endfor
        }
% for f in k.folds:
        folds${f.number}[lane] = q${f.number};
% endfor
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int span = ${k.group // 2}; span > 0; span /= 2) {
            if (lane < span) {
% for f in k.folds:
                folds${f.number}[lane] = ${f.combined(f"folds{f.number}[lane]", f"folds{f.number}[lane + span]")};
% endfor
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
% for f in k.folds:
        q${f.number} = folds${f.number}[0];
% endfor
        barrier(CLK_LOCAL_MEM_FENCE);
% endif
% if k.is_plain:
% for line in k.bodies[0].groups + k.bodies[0].before:
        ${line}
% endfor
% endif
% if k.looks_back:
        const ${k.index} tile = low;
        {
% else:
        for (${k.index} tile = low; tile < high; tile += ${k.group * k.each}) {
% endif
        #pragma unroll 4
${elements("first")}\
        // The result may lie where the operand did.
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
% for f in k.folds:
        ${f.type} own${f.number} = s${f.number}[lane * ${k.each} + lane * ${k.each} / ${f.pad}];
% endfor
        for (int slot = 1; slot < ${k.each}; slot++) {
            const int place = lane * ${k.each} + slot;
% for f in k.folds:
            { const ${f.type} item = s${f.number}[place + place / ${f.pad}];
            s${f.number}[place + place / ${f.pad}] = own${f.number} = ${f.combined(f"own{f.number}", "item")}; }
% endfor
        }
% for f in k.folds:
        folds${f.number}[lane] = own${f.number};
% endfor
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int span = 1; span < ${k.group}; span *= 2) {
% for f in k.folds:
            const ${f.type} w${f.number} = folds${f.number}[max(lane - span, 0)];
% endfor
            barrier(CLK_LOCAL_MEM_FENCE);
            if (lane >= span) {
% for f in k.folds:
                folds${f.number}[lane] = own${f.number} = ${f.combined(f"w{f.number}", f"own{f.number}")};
% endfor
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
% for f in k.folds:
        const ${f.type} all${f.number} = folds${f.number}[${k.group - 1}];
        ${f.type} h${f.number} = ${f.identity};
        if (lane > 0) h${f.number} = folds${f.number}[lane - 1];
% endfor
        barrier(CLK_LOCAL_MEM_FENCE);
% if k.looks_back:
        if (lane == 0 && piece > 0) {
% for f in k.folds:
            { const ${f.type} value = all${f.number};
${write(f, f.own)}\
            }
% endfor
        }
        // The nearest tile before this one of which the fold of all up to it is there.
        ${k.index} behind = piece;
        int found = piece > 0 ? ${k.group} : 0;
        while (found == ${k.group}) {
            if (lane == 0)
                nearest = ${k.group};
            barrier(CLK_LOCAL_MEM_FENCE);
            const ${k.index} other = behind - 1 - lane;
            int state = 0;
            while (other >= 0 && state == 0) {
                if (*(volatile __global uint *)(${k.folds[0].upto[0]} + unit - piece + other))
                    state = 2;
                else if (*(volatile __global uint *)(${k.folds[0].own[0]} + unit - piece + other))
                    state = 1;
            }
            if (state == 2)
                atomic_min(&nearest, lane);
            barrier(CLK_LOCAL_MEM_FENCE);
            found = nearest;
            behind -= found;
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        // `behind` tiles are folded up to there; the others follow one by one.
        if (lane == 0 && piece > 0) {
% for f in k.folds:
            {
${read(f, f.upto, "unit - piece + behind - 1")}\
            q${f.number} = ${f.whole};
            }
% endfor
        }
        for (; behind < piece; behind += ${k.group}) {
            if (behind + lane < piece) {
% for f in k.folds:
            {
${read(f, f.own, "unit - piece + behind + lane")}\
            folds${f.number}[lane] = ${f.whole};
            }
% endfor
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            if (lane == 0) {
                const int count = (int)min((${k.index})${k.group}, piece - behind);
                for (int one = 0; one < count; one++) {
% for f in k.folds:
                    q${f.number} = ${f.combined(f"q{f.number}", f"folds{f.number}[one]")};
% endfor
                }
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        if (lane == 0) {
% for f in k.folds:
            { const ${f.type} value = ${f.combined(f"q{f.number}", f"all{f.number}")};
${write(f, f.upto)}\
            folds${f.number}[0] = q${f.number}; }
% endfor
        }
        barrier(CLK_LOCAL_MEM_FENCE);
% for f in k.folds:
        q${f.number} = folds${f.number}[0];
% endfor
% endif
% for f in k.folds:
        h${f.number} = ${f.combined(f"q{f.number}", f"h{f.number}")};
% endfor
        for (int slot = 0; slot < ${k.each}; slot++) {
            const int place = lane * ${k.each} + slot;
% for f in k.folds:
            s${f.number}[place + place / ${f.pad}] = ${f.combined(f"h{f.number}", f"s{f.number}[place + place / {f.pad}]")};
% endfor
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        #pragma unroll 4
${elements("after")}\
% if not k.looks_back:
% for f in k.folds:
        q${f.number} = ${f.combined(f"q{f.number}", f"all{f.number}")};
% endfor
        barrier(CLK_LOCAL_MEM_FENCE);
% endif
        }
    }
}
