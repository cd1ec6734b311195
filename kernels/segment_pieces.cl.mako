## Elements in order of their places, ${k.piece} of them a work-item: a place that lies inside of a piece is
## folded with what lies there; what reaches over an end of the piece is left for the next kernel.
##
##    left    two elements a piece, in order of their places again: of the place that came in, and of the
##            one that goes on; of a place that fills the piece both. Place -1 where there is none
__kernel void ${k.name}(${k.signature})
{
    __global const ${k.place_kind} *places = ${k.places};
    __global const ${k.memory} *values = ${k.values};
    const ${k.index} pieces = (n + ${k.piece - 1}) / ${k.piece};
    for (${k.index} piece = get_global_id(0); piece < pieces; piece += (${k.index})get_global_size(0)) {
        const ${k.index} low = piece * ${k.piece}, high = min(low + ${k.piece}, n);
        ${k.place_kind} place = places[low], came = -1, goes = -1;
        ${k.value_kind} total = ${k.value_at['low']}, value = total, kept = total, first = total, last = total;
        int comes = low > 0 && places[low - 1] == place;
        for (${k.index} j = low + 1; j <= high; j++) {
            const ${k.place_kind} next = j < n ? places[j] : -1;
            const int same = j < n && next == place;
            if (j < high && same) {
                value = ${k.value_at['j']};
                kept = total;
                total = ${k.combined};
                continue;
            }
            if (place >= 0 && comes) {
                came = place;
                first = total;
                if (same) {
                    first = kept;
                    goes = place;
                    last = value;
                }
            } else if (place >= 0 && same) {
                goes = place;
                last = total;
            } else if (place >= 0) {
                const ${k.total_kind} there = ${k.there};
                ${k.out}[place] = ${k.applied};
            }
            if (j < high) {
                place = next;
                total = ${k.value_at['j']};
                comes = 0;
            }
        }
        ${k.left_places}[2 * piece] = came;
        ${k.left_places}[2 * piece + 1] = goes;
        ${k.left_values}[2 * piece] = ${k.ends[0]};
        ${k.left_values}[2 * piece + 1] = ${k.ends[1]};
    }
}
