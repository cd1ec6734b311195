## Elements in order of their places: those of one place are folded, one after another, with what lies there.
##
##    unit    an element; the work-item of the first one of a place folds all of that place
__kernel void ${k.name}(${k.signature})
{
    __global const ${k.place_kind} *places = ${k.places};
    __global const ${k.memory} *values = ${k.values};
    for (${k.index} first = get_global_id(0); first < n; first += (${k.index})get_global_size(0)) {
        const ${k.place_kind} place = places[first];
        if (place < 0 || (first > 0 && places[first - 1] == place))
            continue;  // nothing was left here, or another work-item folds this place
        ${k.total_kind} total = ${k.there};
        for (${k.index} j = first; j < n && places[j] == place; j++) {
            const ${k.value_kind} value = ${k.value_at['j']};
            total = ${k.combined};
        }
        ${k.out}[place] = ${k.stored};
    }
}
