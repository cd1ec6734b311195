## Matrix product of the GPU schedule: a work-group computes a tile of ${k.tile} x ${k.tile} results from tiles in
## local memory, so every element is loaded once a tile instead of once a result.
##
##         j ->               A: rows x inner,  B: inner x columns, both strided, batches decoded from the group
##      i  [tile]             global size: tiles * tile x tile, one dimension
${k.head}\
__kernel void ${k.name}(${k.signature})
{
    __local ${k.type} left[${k.tile}][${k.tile}];
    __local ${k.type} right[${k.tile}][${k.tile}];
    const int x = get_local_id(0) % ${k.tile}, y = get_local_id(0) / ${k.tile};
    const ${k.index} wide = (columns + ${k.tile - 1}) / ${k.tile}, tall = (rows + ${k.tile - 1}) / ${k.tile};
    const ${k.index} tile = get_group_id(0), row = tile / (wide * tall);
    const ${k.index} inside = tile - row * (wide * tall);
    const ${k.index} i = inside / wide * ${k.tile} + y, j = inside % wide * ${k.tile} + x;
% for line in k.decode:
    ${line}
% endfor
    ${k.type} sum = (${k.type})(0);
    for (${k.index} start = 0; start < inner; start += ${k.tile}) {
        const ${k.index} p = start + x, q = start + y;
        left[y][x] = (${k.type})(0);
        right[y][x] = (${k.type})(0);
        if (i < rows && p < inner) left[y][x] = ${k.load_left};
        if (q < inner && j < columns) right[y][x] = ${k.load_right};
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int t = 0; t < ${k.tile}; t++) {
            const ${k.type} product = ${k.product};
            sum = ${k.sum};
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (i < rows && j < columns) {
        const ${k.index} place = (row * rows + i) * columns + j;
        ${k.store}
    }
}
