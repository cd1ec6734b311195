## How many elements fall into each place, or the sum of their weights: a row of results a piece.
##
##    unit    a piece of the elements: a work-group shares its counters in local memory
##    counts  by atomic operations; ${k.copies} counters for each place, so that neighbours meet less often
##    sums    the group loads ${k.group} elements, then each work-item adds those of its own places, in their order
__kernel void ${k.name}(${k.signature})
{
    __local ${k.kind} s[${k.room * k.copies}];
% if k.weighs:
    __local int places[${k.group}];
    __local ${k.kind} weights[${k.group}];
% endif
    const int lane = get_local_id(0);
    for (${k.index} piece = get_group_id(0); piece < chunks; piece += (${k.index})get_num_groups(0)) {
        const ${k.index} low = min(piece * chunk_length, ${k.extent}), high = min(low + chunk_length, ${k.extent});
        for (int at = lane; at < ${k.room * k.copies}; at += ${k.group})
            s[at] = 0;
% for line in k.groups + k.before:
        ${line}
% endfor
        barrier(CLK_LOCAL_MEM_FENCE);
% if k.weighs:
        for (${k.index} tile = low; tile < high; tile += ${k.group}) {
            const ${k.index} j = min(tile + lane, high - 1);
% for line in k.body:
            ${line}
% endfor
            const ${"long" if k.wide else "int"} place = ${k.place};
            places[lane] = tile + lane < high && place >= 0 && place < bins ? (int)place : -1;
            weights[lane] = ${k.value};
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int other = 0; other < ${k.group}; other++) {
                const int at = places[other];
                if (at >= 0 && at % ${k.group} == lane)
                    s[at] += weights[other];
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        for (int at = lane; at < bins; at += ${k.group})
            ${k.out}[piece * bins + at] = s[at];
% else:
        for (${k.index} tile = low; tile < high; tile += ${k.group * k.together}) {
            int found[${k.together}];
            #pragma unroll
            for (int turn = 0; turn < ${k.together}; turn++) {
                const ${k.index} own = tile + turn * ${k.group} + lane, j = min(own, high - 1);
% for line in k.body:
                ${line}
% endfor
                const ${"long" if k.wide else "int"} place = ${k.place};
                found[turn] = own < high && place >= 0 && place < bins ? (int)place : -1;
            }
            #pragma unroll
            for (int turn = 0; turn < ${k.together}; turn++)
                if (found[turn] >= 0)
                    atomic_inc((volatile __local uint *)s + found[turn] * ${k.copies} + lane % ${k.copies});
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int at = lane; at < bins; at += ${k.group}) {
            uint total = 0;
            for (int copy = 0; copy < ${k.copies}; copy++)
                total += s[at * ${k.copies} + copy];
            ${k.out}[piece * bins + at] = total;
        }
% endif
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
