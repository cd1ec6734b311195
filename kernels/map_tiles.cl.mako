## Element-wise kernels on a GPU that read or write some array across its rows, through local memory.
##
##    tile    ${k.tall} rows of ${k.wide} columns, which a work-group takes; further ones in strides
##    fill    operands that lie across: lanes run down the rows
##    body    lanes run along the rows
##    spill   results that lie across: lanes run down the rows
##    part    of a square that is read both ways, a tile and the one that mirrors it
<%def name="elements(down, what)">\
        for (uint place = lane; place < ${k.tall * k.wide}; place += ${k.group}) {
% if down:
            const int below = place % ${k.tall}, across = place / ${k.tall};
% else:
            const int across = place % ${k.wide}, below = place / ${k.wide};
% endif
            const ${k.index} ${k.down} = top + below, j = left + across;
            if (${k.down} >= ${k.rows} || j >= n) continue;
% if k.has_seams:
            const ${k.index} at = j;
% endif
% for number, b in enumerate(k.bodies):
% if len(k.bodies) > 1:
            ${"else " if number else ""}${f"if ({b.test}) " if b.test else ""}{
% endif
% for line in b.groups + (b.before + b.lines if what == "lines" else getattr(b, what)):
            ${line}
% endfor
% if len(k.bodies) > 1:
            }
% endif
% endfor
        }
</%def>\
__kernel void ${k.name}(${k.signature})
{
% for array in k.tiles:
    ${array}
% endfor
    const uint lane = get_local_id(0);
    const ${k.index} wide = (n + ${k.wide - 1}) / ${k.wide};
% if k.mirrored:
    // Pairs of tiles, those on the diagonal alone, laid out as a rectangle of half the rows and a column more.
    const ${k.index} even = wide + wide % 2;
    const ${k.index} each = even / 2 * (even + 1);
% else:
    const ${k.index} each = (${k.rows} + ${k.tall - 1}) / ${k.tall} * wide;
% endif
    const ${k.index} tiles = ${" * ".join(["each", *k.outer])};
    for (${k.index} tile = get_group_id(0); tile < tiles; tile += get_num_groups(0)) {
        const ${k.index} outer = tile / each, number = tile - outer * each;
% for line in k.decode:
        ${line}
% endfor
% if k.mirrored:
        const ${k.index} above = number / (even + 1), aside = number - above * (even + 1);
        const ${k.index} row = aside > above ? above : even - 1 - above;
        const ${k.index} column = aside > above ? aside - 1 : even - 1 - aside;
        const int parts = row == column ? 1 : 2;
        for (int part = 0; part < parts; part++) {
        const ${k.index} top = (part ? column : row) * ${k.tall}, left = (part ? row : column) * ${k.wide};
${elements(False, "fill")}\
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int part = 0; part < parts; part++) {
        const int other = parts - 1 - part;
        const ${k.index} top = (part ? column : row) * ${k.tall}, left = (part ? row : column) * ${k.wide};
${elements(False, "lines")}\
        }
% else:
        const ${k.index} down = number / wide;
        const ${k.index} top = down * ${k.tall}, left = (number - down * wide) * ${k.wide};
% if k.loads:
${elements(True, "fill")}\
        barrier(CLK_LOCAL_MEM_FENCE);
% endif
${elements(False, "lines")}\
% if k.stores:
        barrier(CLK_LOCAL_MEM_FENCE);
${elements(True, "spill")}\
% endif
% endif
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
