## What a mask selects: ${"put back, element by element" if k.expands else "packed side by side"}.
##
##    unit    a piece of the mask; the elements that it selects start at number starts[piece]
##    CPU     a work-item keeps the running number q of the next selected element
##    GPU     a work-group shares a piece and finds the numbers of ${k.group} neighbours together, or of
##            ${k.each} times as many: 16 bits of s count for each of a work-item's elements
__kernel void ${k.name}(${k.signature})
{
% if k.schedule == "gpu":
    __local ${"int" if k.expands else "ulong"} s[${k.group}];
    const int lane = get_local_id(0);
    for (${k.index} piece = get_group_id(0); piece < chunks; piece += (${k.index})get_num_groups(0)) {
% else:
    const ${k.index} run = (chunks + (${k.index})get_global_size(0) - 1) / (${k.index})get_global_size(0);
    const ${k.index} first = (${k.index})get_global_id(0) * run, last = min(first + run, chunks);
    for (${k.index} piece = first; piece < last; piece++) {
% endif
        const ${k.index} low = piece * chunk_length, high = min(low + chunk_length, ${k.extent});
        ${k.index} q = (${k.index})${k.starts}[piece];
        const ${k.index} limit = (${k.index})${k.starts}[piece + 1];
% if not k.expands:
        if (q == limit)
            continue;
% endif
% for line in k.groups + k.before:
        ${line}
% endfor
% if k.schedule == "gpu" and not k.expands:
        for (${k.index} tile = low; tile < high; tile += ${k.group * k.each}) {
% for line in k.kept:
            ${line}
% endfor
            ulong counts = 0;
            #pragma unroll
            for (int slot = 0; slot < ${k.each}; slot++) {
                const ${k.index} place = tile + slot * ${k.group} + lane;
                const int active = place < high;
                const ${k.index} j = active ? place : high - 1;
% for line in k.scalar_body:
                ${line}
% endfor
                counts |= (ulong)(active && (${k.mask})) << 16 * slot;
% for line in k.keeps:
                ${line}
% endfor
            }
            s[lane] = counts;
            // The result may lie where an operand did, and work-items past the end have read there.
            barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
            for (int span = 1; span < ${k.group}; span *= 2) {
                const ulong before = lane >= span ? s[lane - span] : 0;
                barrier(CLK_LOCAL_MEM_FENCE);
                s[lane] += before;
                barrier(CLK_LOCAL_MEM_FENCE);
            }
            const ulong upto = s[lane], together = s[${k.group - 1}];
            ${k.index} start = q;
            #pragma unroll
            for (int slot = 0; slot < ${k.each}; slot++) {
                q = start + (int)(upto >> 16 * slot & 0xffff) - 1;
                if (counts >> 16 * slot & 1) {
% for line in k.selected:
                    ${line}
% endfor
                }
                start += (int)(together >> 16 * slot & 0xffff);
            }
            q = start;
            barrier(CLK_LOCAL_MEM_FENCE);
        }
% elif k.schedule == "gpu":
        for (${k.index} tile = low; tile < high; tile += ${k.group}) {
            const int active = tile + lane < high;
            const ${k.index} j = active ? tile + lane : high - 1;
% for line in k.scalar_body:
            ${line}
% endfor
            const int taken = active && (${k.mask});
            s[lane] = taken;
            // The result may lie where an operand did, and work-items past the end have read there.
            barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
            for (int span = 1; span < ${k.group}; span *= 2) {
                const int before = lane >= span ? s[lane - span] : 0;
                barrier(CLK_LOCAL_MEM_FENCE);
                s[lane] += before;
                barrier(CLK_LOCAL_MEM_FENCE);
            }
            const int together = s[${k.group - 1}];
            const ${k.index} at = taken ? q + s[lane] - 1 : 0;
            if (active) {
% for line in k.selected:
                ${line}
% endfor
            }
            q += together;
            barrier(CLK_LOCAL_MEM_FENCE);
        }
% else:
% if k.expands:
        const ${k.index} end = max(limit - 1, (${k.index})0);
% endif
        ${k.index} j = low;
% if k.vector_body:
% for line in k.buffers:
        ${line}
% endfor
        for (; j + ${k.width} <= high${"" if k.expands else " && q < limit"}; j += ${k.width}) {
% for line in k.vector_body:
            ${line}
% endfor
        }
% endif
% if k.expands:
        for (; j < high; j++) {
% for line in k.scalar_body:
            ${line}
% endfor
            const int taken = (${k.mask}) != 0;
            const ${k.index} at = min(q, end);
% for line in k.selected:
            ${line}
% endfor
            q += taken;
        }
% else:
        for (; j < high && q < limit; j++) {
% for line in k.scalar_body:
            ${line}
% endfor
            if (${k.mask}) {
% for line in k.selected:
                ${line}
% endfor
                q++;
            }
        }
% endif
% endif
    }
}
