## Scans along columns on a GPU: neighbouring work-items have neighbouring columns.
##
##    a work-item takes a column, or a piece of one, and walks down its rows; with several bodies, each
##    in boxes of its own, an element has one of them
__kernel void ${k.name}(${k.signature})
{
    const ${k.index} units = ${" * ".join(k.row_extents + ["n"])}${" * chunks" if k.chunked else ""};
    for (${k.index} unit = get_global_id(0); unit < units; unit += (${k.index})get_global_size(0)) {
        const ${k.index} across = unit / n, j = unit - across * n;
% if k.chunked:
        const ${k.index} row = across / chunks, piece = across - row * chunks;
        const ${k.index} low = piece * chunk_length, high = min(low + chunk_length, ${k.chunk_extent});
% else:
        const ${k.index} row = across;
% endif
% for line in k.decode:
        ${line}
% endfor
% if k.seams:
        const ${k.index} at = j;
% endif
% for p in k.phases:
% for line in p.start:
        ${line}
% endfor
% for dim, begin, end in k.outer_loops:
        for (${k.index} i${dim} = ${begin}; i${dim} < ${end}; i${dim}++) {
% endfor
% for number, b in enumerate(p.bodies):
% if len(p.bodies) > 1:
            ${"else " if number else ""}${f"if ({b.test}) " if b is not p.bodies[-1] else ""}{
% endif
% for line in b.lines:
            ${line}
% endfor
% if len(p.bodies) > 1:
            }
% endif
% endfor
% for _ in k.outer_loops:
        }
% endfor
% for line in p.finish:
        ${line}
% endfor
% endfor
    }
}
