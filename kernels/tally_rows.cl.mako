## How many elements fall into each place, or the sum of their weights, on a CPU: a row of results a piece.
##
##    piece   a work-item counts it in its row, which stays in the cache
##    vector  places that take operations are computed ${k.width} at once, and counted one by one
<%def name="count(place, value)">\
const ${"long" if k.wide else "int"} place = ${place};
                if (place >= 0 && place < bins)
                    counts[place] += ${value if k.weighs else 1};
</%def>\
__kernel void ${k.name}(${k.signature})
{
    for (${k.index} piece = get_global_id(0); piece < chunks; piece += (${k.index})get_global_size(0)) {
        const ${k.index} low = min(piece * chunk_length, ${k.extent}), high = min(low + chunk_length, ${k.extent});
        __global ${k.kind} *counts = ${k.out} + piece * bins;
        for (${k.index} at = 0; at < bins; at++)
            counts[at] = 0;
% for line in k.groups + k.before:
        ${line}
% endfor
        ${k.index} j = low;
% if k.lanes:
        for (; j + ${k.width} <= high; j += ${k.width}) {
% for line in k.lanes:
            ${line}
% endfor
            #pragma unroll
            for (int lane = 0; lane < ${k.width}; lane++) {
                ${count("found[lane]", "weights[lane]")}\
            }
        }
% endif
        for (; j < high; j++) {
% for line in k.body:
            ${line}
% endfor
            {
                ${count(k.place, k.value)}\
            }
        }
    }
}
