## Matrix product on a GPU: a work-group computes a tile of ${k.tile.rows} x ${k.tile.columns} results, each work-item
## ${k.tile.each_row} x ${k.tile.each_column} of them in registers, as squares of ${k.tile.lanes} x ${k.tile.lanes}, whose operands are vectors in
## local memory. While a step of ${k.tile.depth} products is computed, the operands of the next one come to
## registers, and go to the other buffer.
##
##         j ->               A: rows x inner,  B: inner x columns, both strided, batches decoded from the group
##      i  [tile]             work-item (y, x) has a square at rows ${k.tile.lanes} y and columns ${k.tile.lanes} x, one below each, ${k.tile.down * k.tile.lanes} apart,
##                            and one beside each, ${16 * k.tile.lanes} apart
##
## 32 work-items that run together are 4 x 8 of them: two rows and four columns of eight load 6 vectors, not 9.
## Rows and columns outside of the matrices are others again: what comes of them is not stored.
## Groups go down a band of ${k.band} tiles before they go along, so that those which run together share operands.
## Results go through local memory too, ${k.tile.down} rows at a time, so that neighbours store what lies side by side.
<%
t = k.tile
row_squares, column_squares = t.each_row // t.lanes, t.each_column // t.lanes
vector = f"{k.type}{t.lanes}"
%>\
<%def name="fetch()">\
#pragma unroll
        for (int part = 0; part < ${k.left.parts}; part++) {
            const int element = item + part * ${t.group};
            lefts[part] = (${k.left.type})(0);
            if (start + ${k.left.inner} < inner) lefts[part] = ${k.left.load};
        }
#pragma unroll
        for (int part = 0; part < ${k.right.parts}; part++) {
            const int element = item + part * ${t.group};
            rights[part] = (${k.right.type})(0);
            if (start + ${k.right.inner} < inner) rights[part] = ${k.right.load};
        }
</%def>\
<%def name="put_side(side, name, turn)">\
#pragma unroll
        for (int part = 0; part < ${side.parts}; part++) {
            const int element = item + part * ${t.group};
            const int u = ${side.inner}, v = ${side.outer};
% if side.width == 1:
            ((__local ${k.type}*)${name}[${turn}][u])[v] = ${name}s[part];
% elif side.is_along_outer:
            ${name}[${turn}][u][v / ${t.lanes}] = ${name}s[part];
% else:
% for lane in range(t.lanes):
            ((__local ${k.type}*)${name}[${turn}][u + ${lane}])[v] = ${name}s[part].s${lane};
% endfor
% endif
        }
</%def>\
<%def name="put(turn)">\
${put_side(k.left, "left", turn)}\
${put_side(k.right, "right", turn)}\
</%def>\
${k.head}\
__kernel __attribute__((reqd_work_group_size(${t.group}, 1, 1))) void ${k.name}(${k.signature})
{
    __local ${vector} left[2][${t.depth}][${t.rows // t.lanes + 1}], right[2][${t.depth}][${t.columns // t.lanes + 1}];
    const int item = get_local_id(0);
    const int x = item / 2 % 8 + item / 32 % 2 * 8, y = item % 2 + item / 16 % 2 * 2 + item / 64 * 4;
    const ${k.index} wide = (columns + ${t.columns - 1}) / ${t.columns}, tall = (rows + ${t.rows - 1}) / ${t.rows};
    const ${k.index} tile = get_group_id(0), stack = tile / (wide * tall);
    const ${k.index} inside = tile - stack * (wide * tall), band = inside / (wide * ${k.band}) * ${k.band};
    const ${k.index} high = min(tall - band, (${k.index})${k.band}), within = inside - band * wide;
    const ${k.index} top = (band + within % high) * ${t.rows}, first = within / high * ${t.columns};
% for line in k.decode:
    ${line}
% endfor
    ${k.type} sums[${t.each_row}][${t.each_column}];
    ${k.left.type} lefts[${k.left.parts}];
    ${k.right.type} rights[${k.right.parts}];
    ${k.index} left_places[${k.left.parts}], right_places[${k.right.parts}];
#pragma unroll
    for (int part = 0; part < ${k.left.parts}; part++) {
        const int element = item + part * ${t.group};
        const ${k.index} i = min(top + ${k.left.outer}, rows - ${k.left.beside}), p = ${k.left.inner};
        left_places[part] = ${k.left.place};
    }
#pragma unroll
    for (int part = 0; part < ${k.right.parts}; part++) {
        const int element = item + part * ${t.group};
        const ${k.index} j = min(first + ${k.right.outer}, columns - ${k.right.beside}), p = ${k.right.inner};
        right_places[part] = ${k.right.place};
    }
#pragma unroll
    for (int a = 0; a < ${t.each_row}; a++) {
#pragma unroll
        for (int b = 0; b < ${t.each_column}; b++) sums[a][b] = (${k.type})(0);
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
    for (${k.index} start = ${t.depth}; start < inner + ${t.depth}; start += ${t.depth}) {
${fetch()}\
#pragma unroll ${t.unrolled}
        for (int t = 0; t < ${t.depth}; t++) {
% for square in range(row_squares):
            const ${vector} l${square} = left[turn][t][${square * t.down} + y];
% endfor
% for square in range(column_squares):
            const ${vector} r${square} = right[turn][t][${square * 16} + x];
% endfor
            const ${k.type} l[${t.each_row}] = {${", ".join(f"l{a // t.lanes}.s{a % t.lanes}" for a in range(t.each_row))}};
            const ${k.type} r[${t.each_column}] = {${", ".join(f"r{b // t.lanes}.s{b % t.lanes}" for b in range(t.each_column))}};
#pragma unroll
            for (int a = 0; a < ${t.each_row}; a++) {
#pragma unroll
                for (int b = 0; b < ${t.each_column}; b++) {
                    ${k.accumulate}
                }
            }
        }
        turn = 1 - turn;
${put("turn")}\
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    __local ${k.type}* staged = (__local ${k.type}*)left;
#pragma unroll
    for (int a = 0; a < ${t.each_row}; a++) {
% for square in range(column_squares):
        ((__local ${vector}*)staged)[y * ${t.columns // t.lanes + 1} + ${square * 16} + x] = (${vector})(${", ".join(f"sums[a][{square * t.lanes + lane}]" for lane in range(t.lanes))});
% endfor
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int place = item; place < ${t.down * t.columns}; place += ${t.group}) {
            const int below = place / ${t.columns}, aside = place % ${t.columns};
            const ${k.index} ${k.row} = top + ${t.lanes} * below + a % ${t.lanes} + a / ${t.lanes} * ${t.down * t.lanes}, j = first + aside;
            if (${k.row} >= rows || j >= columns) continue;
            const ${k.type} total = staged[below * ${t.columns + t.lanes} + aside];
% for line in k.epilogue:
            ${line}
% endfor
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
