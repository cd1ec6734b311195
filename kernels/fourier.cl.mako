## Fourier transforms of ${k.length} points: a work-group makes ${k.together} side by side in its local memory.
##
##    load      points of the axis -> here[transform][point]; elements that are not there are 0
##    rounds    a work-item reads the points of a butterfly, a fraction of the length apart, turns each by a root of
##              unity, and writes the results side by side for the next round (Stockham)
##                  here  [ . . x . . . x . . . x . . . x . ]      there  [ . . . . x x x x . . . . . . . . ]
##    store     turned for the launches behind this one, scaled
${k.head}\
typedef ${k.number} number_t;
#define QUARTER(a) ((number_t)${k.quarter})
static inline number_t times(const number_t a, const number_t b)
{
    return (number_t)(fma(a.x, b.x, -(a.y * b.y)), fma(a.x, b.y, a.y * b.x));
}
% for each in k.butterflies:
static inline void butterfly_${each.radix}(number_t *v)
{
% for line in each.lines:
    ${line}
% endfor
}
% endfor
<%
    here, there = "left", "right"
%>\
__kernel void ${k.name}(${k.signature})
{
    __local number_t left[${k.together * k.pitch}];
% if k.rounds:
    __local number_t right[${k.together * k.pitch}];
% endif
    const int item = get_local_id(0);
    const ${k.index} first = (${k.index})get_group_id(0) * ${k.together};
    for (int e = item; e < ${k.together * k.length}; e += ${k.items}) {
% if k.load_by_rows:
        const int beside = e % ${k.together}, j = e / ${k.together};
% else:
        const int beside = e / ${k.length}, j = e % ${k.length};
% endif
        const ${k.index} row = first + beside;
        number_t z = (number_t)(0);
        if (row < rows) {
% for line in k.load_decode:
            ${line}
% endfor
            const ${k.index} position = ${k.load_position};
% if k.form == "halved":
            const ${k.index} mirrored = ${k.points} - position, at = mirrored < position ? mirrored : position;
            if (position < ${k.points} && at < ${k.load_count}) z = ${k.load};
% if k.load_conjugates:
            z.y = -z.y;
% endif
            if (at == 0 || mirrored == position) z.y = 0;
            if (mirrored < position) z.y = -z.y;
% else:
            const ${k.index} at = position;
            if (at < ${k.load_count}) z = ${k.load};
% if k.load_conjugates:
            z.y = -z.y;
% endif
% endif
% if k.load_table:
            if (position < ${k.points}) z = times(z, ${k.load_table}[position]);
% endif
        }
        left[beside * ${k.pitch} + j] = z;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
% for each in k.rounds:
<%
    apart = k.length // each.radix
    stride = k.length // (each.before * each.radix)
%>\
    for (int e = item; e < ${k.together * apart}; e += ${k.items}) {
        const int beside = e / ${apart}, b = e % ${apart}, turn = b % ${each.before};
        number_t v[${each.radix}];
        __local const number_t *from = ${here} + beside * ${k.pitch} + b;
% for q in range(each.radix):
% if q and each.before > 1:
        v[${q}] = times(from[${q * apart}], ${k.roots}[turn * ${q * stride}]);
% else:
        v[${q}] = from[${q * apart}];
% endif
% endfor
        butterfly_${each.radix}(v);
        __local number_t *to = ${there} + beside * ${k.pitch} + (b - turn) * ${each.radix} + turn;
% for q in range(each.radix):
        to[${q * each.before}] = v[${q}];
% endfor
    }
    barrier(CLK_LOCAL_MEM_FENCE);
<%
    here, there = there, here
%>\
% endfor
    for (int e = item; e < ${k.together * k.length}; e += ${k.items}) {
% if k.store_by_rows:
        const int beside = e % ${k.together}, j = e / ${k.together};
% else:
        const int beside = e / ${k.length}, j = e % ${k.length};
% endif
        const ${k.index} row = first + beside;
        if (row >= rows) continue;
% for line in k.store_decode:
        ${line}
% endfor
        const ${k.index} position = ${k.store_position};
        if (position >= ${k.store_count}) continue;
        const ${k.index} at = position;
        number_t z = ${here}[beside * ${k.pitch} + j];
% if k.store_table:
        z = times(z, ${k.store_table}[position]);
% endif
% if k.turns:
        const ${k.index} turn = (${k.index})j * i0;
% if k.fine:
        z = times(z, times(${k.turns}[turn % ${k.fine}], ${k.turns}[${k.fine} + turn / ${k.fine}]));
% else:
        z = times(z, ${k.turns}[turn]);
% endif
% endif
% if k.scale:
        z *= ${k.scale};
% endif
% if k.store_conjugates:
        z.y = -z.y;
% endif
        ${k.store}
    }
}
