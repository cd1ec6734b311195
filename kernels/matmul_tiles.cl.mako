## Matrix product of large matrices on a GPU: a work-group computes a tile of ${k.tile} x ${k.tile} results, each work-item 8 x 8
## of them in registers, as four squares of 4 x 4, whose operands are vectors in local memory. While a step of
## ${k.depth} products is computed, the operands of the next one come to registers, and go to the other buffer.
##
##         j ->               A: rows x inner,  B: inner x columns, both strided, batches decoded from the group
##      i  [tile]             work-item (y, x) has rows 4 y .. 4 y + 3 and those 64 below, columns 4 x .. and those 64 further
##
## Results go through local memory too, 16 rows at a time, so that neighbours store what lies side by side.
<%def name="fetch()">\
#pragma unroll
        for (int part = 0; part < ${k.loads}; part++) {
            const int element = item + part * ${k.group};
            {
                const int u = element ${k.left_inner}, v = element ${k.left_outer};
                const ${k.index} i = top + v, p = start + u;
                lefts[part] = (${k.type})(0);
                if (i < rows && p < inner) lefts[part] = ${k.load_left};
            }
            {
                const int u = element ${k.right_inner}, v = element ${k.right_outer};
                const ${k.index} p = start + u, j = first + v;
                rights[part] = (${k.type})(0);
                if (p < inner && j < columns) rights[part] = ${k.load_right};
            }
        }
</%def>\
<%def name="put(turn)">\
#pragma unroll
        for (int part = 0; part < ${k.loads}; part++) {
            const int element = item + part * ${k.group};
            ((__local ${k.type}*)left[${turn}][element ${k.left_inner}])[element ${k.left_outer}] = lefts[part];
            ((__local ${k.type}*)right[${turn}][element ${k.right_inner}])[element ${k.right_outer}] = rights[part];
        }
</%def>\
${k.head}\
__kernel __attribute__((reqd_work_group_size(${k.group}, 1, 1))) void ${k.name}(${k.signature})
{
    __local ${k.type}4 left[2][${k.depth}][${k.pitch // 4}], right[2][${k.depth}][${k.pitch // 4}];
    const int item = get_local_id(0), x = item % 16, y = item / 16;
    const ${k.index} wide = (columns + ${k.tile - 1}) / ${k.tile}, tall = (rows + ${k.tile - 1}) / ${k.tile};
    const ${k.index} tile = get_group_id(0), stack = tile / (wide * tall);
    const ${k.index} inside = tile - stack * (wide * tall);
    const ${k.index} top = inside / wide * ${k.tile}, first = inside % wide * ${k.tile};
% for line in k.decode:
    ${line}
% endfor
    ${k.type} sums[8][8], lefts[${k.loads}], rights[${k.loads}];
#pragma unroll
    for (int a = 0; a < 8; a++) {
#pragma unroll
        for (int b = 0; b < 8; b++) sums[a][b] = (${k.type})(0);
    }
    {
        const ${k.index} start = 0;
${fetch()}\
    }
    {
${put(0)}\
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    int turn = 0;
    for (${k.index} done = 0; done < inner; done += ${k.depth}) {
        const ${k.index} start = done + ${k.depth};
        if (start < inner) {
${fetch()}\
        }
#pragma unroll 1
        for (int t = 0; t < ${k.depth}; t++) {
            const ${k.type}4 l0 = left[turn][t][y], l1 = left[turn][t][16 + y];
            const ${k.type}4 r0 = right[turn][t][x], r1 = right[turn][t][16 + x];
            const ${k.type} l[8] = {l0.x, l0.y, l0.z, l0.w, l1.x, l1.y, l1.z, l1.w};
            const ${k.type} r[8] = {r0.x, r0.y, r0.z, r0.w, r1.x, r1.y, r1.z, r1.w};
#pragma unroll
            for (int a = 0; a < 8; a++) {
#pragma unroll
                for (int b = 0; b < 8; b++) {
                    ${k.accumulate}
                }
            }
        }
        turn = 1 - turn;
        if (start < inner) {
${put("turn")}\
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    __local ${k.type}* staged = (__local ${k.type}*)left;
#pragma unroll
    for (int a = 0; a < 8; a++) {
        ((__local ${k.type}4*)staged)[y * ${k.pitch // 4} + x] = (${k.type}4)(sums[a][0], sums[a][1], sums[a][2], sums[a][3]);
        ((__local ${k.type}4*)staged)[y * ${k.pitch // 4} + 16 + x] = (${k.type}4)(sums[a][4], sums[a][5], sums[a][6], sums[a][7]);
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int place = item; place < 16 * ${k.tile}; place += ${k.group}) {
            const int below = place / ${k.tile}, aside = place % ${k.tile};
            const ${k.index} ${k.row} = top + 4 * below + a % 4 + a / 4 * 64, j = first + aside;
            if (${k.row} >= rows || j >= columns) continue;
            const ${k.type} total = staged[below * ${k.pitch} + aside];
% for line in k.epilogue:
            ${line}
% endfor
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
