## Sort of short rows, one launch: a work-group of ${k.group} brings ${k.together} rows to local memory, each with room for ${k.length} keys.
##
##    registers  a work-item sorts ${k.each} keys side by side
##    merge      two sorted halves are one bitonic sequence when the second is read backwards: keys are compared with
##               their mirror images, then at half the distance again and again; the last ${k.each} keys in registers
##
##               0 2 5 7 | 1 3 4 9   ->   0 2 4 1 | 3 5 7 9 (mirrored)   ->   0 1 4 2 ...   ->   0 1 2 3 4 5 7 9
##
## Behind a row's end are the greatest keys. Equal keys are compared by their places, where places travel with them.
${k.head}\
typedef ${k.key} key_t;
typedef ${k.bits} bits_t;
typedef ${k.item} item_t;
#define SIGN ((bits_t)1 << ${k.nbits - 1})
#define INFINITE ${k.infinity}
#define QUIET ${k.nan}

// With room behind each work-item's keys: what lies at the same place of all of them is in different banks.
#define AT(place) ((place) + (place) / ${k.each})
% if k.apart:
#define IN_ORDER(one, other) if (other < one || (other == one && other##_from < one##_from)) { \
    const item_t swapped = one; one = other; other = swapped; \
    const ushort moved = one##_from; one##_from = other##_from; other##_from = moved; }
% else:
#define IN_ORDER(one, other) { const item_t least = min(one, other); other = max(one, other); one = least; }
% endif
<%def name="load(name, place)">\
        item_t ${name} = held[AT(${place})];
% if k.apart:
        ushort ${name}_from = from[AT(${place})];
% endif
</%def>\
<%def name="store(name, place)">\
        held[AT(${place})] = ${name};
% if k.apart:
        from[AT(${place})] = ${name}_from;
% endif
</%def>\
<%def name="in_registers(pairs)">\
% for q in range(k.each):
${load(f"key{q}", f"mine + {q}")}\
% endfor
% for one, other in pairs:
        IN_ORDER(key${one}, key${other})
% endfor
% for q in range(k.each):
${store(f"key{q}", f"mine + {q}")}\
% endfor
</%def>\
<%def name="elements()">\
    for (int place = lane; place < ${k.group * k.each}; place += ${k.group}) {
% if k.rows_first:
        const int part = place & ${k.together - 1}, c = place / ${k.together}, row = first + part;
% else:
        const int part = place / ${k.length}, c = place & ${k.length - 1}, row = first + part;
% endif
        const int at = part * ${k.length} + c;
</%def>\

__kernel __attribute__((reqd_work_group_size(${k.group}, 1, 1))) void ${k.name}(${k.signature})
{
    __local item_t held[${k.group * (k.each + 1)}];
% if k.apart:
    __local ushort from[${k.group * (k.each + 1)}];
% endif
% if k.payload == "bits":
    __local bits_t brought[${k.group * k.each}];
% endif
    const int lane = get_local_id(0), mine = lane * ${k.each}, first = get_group_id(0) * ${k.together};
${elements()}\
        key_t key = (key_t)~(key_t)0;
        if (c < n && row < rows) {
% for line in k.decode:
            ${line}
% endfor
            const bits_t b = ${k.source}[${k.source_place}];
            key = ${k.encoded}(b);
% if k.payload == "bits":
            brought[at] = b;
% endif
        }
% if k.packed:
        held[AT(at)] = (item_t)key << 32 | (item_t)c;
% else:
        held[AT(at)] = key;
% endif
% if k.apart:
        from[AT(at)] = (ushort)c;
% endif
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    {
${in_registers(k.network)}\
    }
    barrier(CLK_LOCAL_MEM_FENCE);
% if k.length > k.each:
    for (int width = ${k.each}; width < ${k.length}; width *= 2) {
        for (int distance = width; distance >= ${k.each}; distance /= 2) {
            for (int pair = lane; pair < ${k.group * k.each // 2}; pair += ${k.group}) {
                const int inside = pair & (distance - 1), low = (pair - inside) * 2 + inside;
                const int high = distance == width ? low + 2 * (distance - inside) - 1 : low + distance;
${load("one", "low")}\
${load("other", "high")}\
                IN_ORDER(one, other)
${store("one", "low")}\
${store("other", "high")}\
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
${in_registers(k.merge)}\
        barrier(CLK_LOCAL_MEM_FENCE);
    }
% endif
${elements()}\
        if (c < n && row < rows) {
% for line in k.decode:
            ${line}
% endfor
% if k.payload:
            const int from_place = ${"(int)from[AT(at)]" if k.apart else "(int)(uint)held[AT(at)]"};
% endif
% if k.payload == "order":
            ${k.target}[${k.target_place}] = (long)from_place;
% elif k.payload == "bits":
            ${k.target}[${k.target_place}] = brought[part * ${k.length} + from_place];
% else:
            const key_t key = held[AT(at)];
            ${k.target}[${k.target_place}] = ${k.decoded}(key);
% endif
        }
    }
}
