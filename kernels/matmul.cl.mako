## Matrix product of the GPU schedule: a work-group computes a tile of ${k.tile} x ${k.tile} results from tiles in
## local memory, each work-item ${k.block} x ${k.block} of them in registers: an element is loaded from global memory
## once a tile, and from local memory once for ${k.block} results. What follows the product is done before it is stored.
##
##         j ->               A: rows x inner,  B: inner x columns, both strided, batches decoded from the group
##      i  [tile]             work-item (y, x) has the results (y + ${k.side} a, x + ${k.side} b) of the tile
${k.head}\
__kernel void ${k.name}(${k.signature})
{
    __local ${k.type} left[${k.side}][${k.tile} + 1];
    __local ${k.type} right[${k.side}][${k.tile} + 1];
    const int item = get_local_id(0), x = item % ${k.side}, y = item / ${k.side};
    const ${k.index} wide = (columns + ${k.tile - 1}) / ${k.tile}, tall = (rows + ${k.tile - 1}) / ${k.tile};
    const ${k.index} tile = get_group_id(0), stack = tile / (wide * tall);
    const ${k.index} inside = tile - stack * (wide * tall);
    const ${k.index} top = inside / wide * ${k.tile}, first = inside % wide * ${k.tile};
% for line in k.decode:
    ${line}
% endfor
    ${k.type} sums[${k.block}][${k.block}];
    for (int a = 0; a < ${k.block}; a++)
        for (int b = 0; b < ${k.block}; b++) sums[a][b] = (${k.type})(0);
    for (${k.index} start = 0; start < inner; start += ${k.side}) {
        for (int part = 0; part < ${k.block}; part++) {
            const int element = item + part * ${k.side * k.side};
            {
                const int u = element ${k.left_inner}, v = element ${k.left_outer};
                const ${k.index} i = top + v, p = start + u;
                left[u][v] = (${k.type})(0);
                if (i < rows && p < inner) left[u][v] = ${k.load_left};
            }
            {
                const int u = element ${k.right_inner}, v = element ${k.right_outer};
                const ${k.index} p = start + u, j = first + v;
                right[u][v] = (${k.type})(0);
                if (p < inner && j < columns) right[u][v] = ${k.load_right};
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int t = 0; t < ${k.side}; t++) {
            ${k.type} l[${k.block}], r[${k.block}];
#pragma unroll
            for (int a = 0; a < ${k.block}; a++) l[a] = left[t][y + ${k.side} * a];
#pragma unroll
            for (int b = 0; b < ${k.block}; b++) r[b] = right[t][x + ${k.side} * b];
#pragma unroll
            for (int a = 0; a < ${k.block}; a++) {
#pragma unroll
                for (int b = 0; b < ${k.block}; b++) {
                    ${k.accumulate}
                }
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int a = 0; a < ${k.block}; a++) {
        for (int b = 0; b < ${k.block}; b++) {
            const ${k.index} ${k.row} = top + y + ${k.side} * a, j = first + x + ${k.side} * b;
            if (${k.row} >= rows || j >= columns) continue;
            const ${k.type} total = sums[a][b];
% for line in k.epilogue:
            ${line}
% endfor
        }
    }
}
