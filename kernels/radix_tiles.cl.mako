## Passes of a radix sort on a GPU, a digit of ${k.digits} values each: a work-group takes a chunk of a row, tile by tile.
##
##    count     the group counts the digits of its chunk in local memory:   table[row][chunk][digit]
##    sums      a lane a digit: what is before each chunk among ${k.segment} of them, and what these have:  totals[row][segment][digit]
##    scan      the same over all segments of a row (or chunks, where they are few), behind what is before each digit
##    scatter   a tile of ${k.tile} keys is brought in order of its digits in local memory, by four bits at a time, and goes to
##              memory in runs of equal digits; equal ones stay in the order they were in
##
##              rank of a key among four bits:  keys of lower ones + equal ones of lanes before + equal ones before in its lane
##
## The first pass makes keys of the elements that it loads, the last one elements of the keys that it stores.
${k.head}\
typedef ${k.key} key_t;
% if k.is_first or k.is_last:
typedef ${k.bits} bits_t;
#define SIGN ((bits_t)1 << ${k.nbits - 1})
#define INFINITE ${k.infinity}
#define QUIET ${k.nan}
% endif

<%def name="elements_of_row()">\
% if k.is_first or k.is_last:
% for line in k.decode:
    ${line}
% endfor
% endif
</%def>\
<%def name="load_key(place)">\
% if k.is_first:
            const int c = ${place};
            const bits_t b = ${k.source}[${k.source_place}];
            const key_t key = ${k.encoded}(b);
% else:
            const key_t key = keys[${place}];
% endif
</%def>\
% if k.stage in ("scan", "scatter"):
// What is in the lanes before; `sums` are twice as many as there are lanes, and take turns.
static inline uint before_lane(uint own, __local uint* sums)
{
    const int lane = get_local_id(0);
    uint sum = own;
    int turn = 0;
    for (int distance = 1; distance < ${k.group}; distance *= 4) {
        __local uint* now = sums + turn;
        now[lane] = sum;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int step = 1; step < 4; step++)
            if (lane >= step * distance) sum += now[lane - step * distance];
        turn = ${k.group} - turn;
    }
    return sum - own;
}

% endif
% if k.stage == "scatter":
// With room behind each lane's keys and counters: what lies at the same place of all lanes is in different banks.
#define AT(place) ((place) + (uint)(place) / ${k.each})
#define COUNTER(bits) ((bits) * ${k.group * 18 // 16} + column)
#define DIGIT(key) ((int)((key) >> shift) & ${k.digits - 1})

% endif
__kernel __attribute__((reqd_work_group_size(${k.group}, 1, 1))) void ${k.name}(${k.signature})
{
    const int lane = get_local_id(0);
% if k.stage in ("count", "scatter"):
    const int row = get_group_id(0) / chunks, chunk = get_group_id(0) - row * chunks;
    const int low = chunk * length, high = min(low + length, n);
% if not k.is_first:
    __global const key_t* keys = ${k.keys} + row * n;
% endif
${elements_of_row()}\
    __global uint* own = ${k.table} + get_group_id(0) * ${k.digits};
% endif
% if k.stage == "count":
    __local uint counts[${k.digits * k.copies}];
    for (int place = lane; place < ${k.digits * k.copies}; place += ${k.group}) counts[place] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int e = low + lane; e < high; e += ${k.group}) {
${load_key("e")}\
            atomic_inc((volatile __local uint*)counts + ((int)(key >> shift) & ${k.digits - 1}) * ${k.copies} + lane % ${k.copies});
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    uint count = 0;
    for (int copy = 0; copy < ${k.copies}; copy++) count += counts[lane * ${k.copies} + copy];
    own[lane] = count;
% elif k.stage == "sums":
    const int segments = (chunks + ${k.segment - 1}) / ${k.segment};
    const int row = get_group_id(0) / segments, segment = get_group_id(0) - row * segments;
    const int low = segment * ${k.segment}, high = min(low + ${k.segment}, chunks);
    __global uint* table = ${k.table} + row * chunks * ${k.digits} + lane;
    uint sum = 0;
    for (int chunk = low; chunk < high; chunk++) {
        const uint own = table[chunk * ${k.digits}];
        table[chunk * ${k.digits}] = sum;
        sum += own;
    }
    ${k.totals}[get_group_id(0) * ${k.digits} + lane] = sum;
% elif k.stage == "scan":
    __local uint sums[${k.group * 2}];
    __global uint* table = ${k.table} + get_group_id(0) * parts * ${k.digits} + lane;
    uint sum = 0;
    for (int part = 0; part < parts; part++) sum += table[part * ${k.digits}];
    sum = before_lane(sum, sums);
    for (int part = 0; part < parts; part++) {
        const uint own = table[part * ${k.digits}];
        table[part * ${k.digits}] = sum;
        sum += own;
    }
% else:
    __local key_t held[${k.tile + k.group}];
% if k.payload:
    __local ushort from[${k.tile + k.group}];
% endif
    __local ushort counters[${k.group * 18}];
    __local uint sums[${k.group * 2}];
    __local uint first[${k.digits}];
    __local uint past[${k.digits}];
    const uint column = lane + (uint)lane / 16 * 2, mine = lane * ${k.each + 1};
    // A lane has a digit, and knows where its next key goes.
    __local uint base[${k.digits}];
    base[lane] = own[lane]${f" + {k.totals}[(row * ((chunks + {k.segment - 1}) / {k.segment}) + chunk / {k.segment}) * {k.digits} + lane]" if k.totals else ""};
    for (int bits = 0; bits < 16; bits++) counters[COUNTER(bits)] = 0;
    for (int start = low; start < high; start += ${k.tile}) {
        const int count = min(high - start, ${k.tile});
        first[lane] = 0;
        past[lane] = 0;
        // Past the end are the greatest keys, which stay behind all others.
        for (int place = lane; place < ${k.tile}; place += ${k.group}) {
            if (place < count) {
${load_key("start + place")}\
                held[AT(place)] = key;
            } else {
                held[AT(place)] = (key_t)~(key_t)0;
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
% for part in range(0, k.digit_bits, 4):
        {
            // How many keys with the same four bits are before each in its lane.
% for i in range(k.each):
            uint rank${i} = counters[COUNTER((int)(held[mine + ${i}] >> (shift + ${part})) & 15)]++;
% endfor
            barrier(CLK_LOCAL_MEM_FENCE);
            uint sum = 0;
% for i in range(8):
            const ushort2 pair${i} = (ushort2)(counters[lane * 18 + ${2 * i}], counters[lane * 18 + ${2 * i + 1}]);
            sum += (uint)pair${i}.x + pair${i}.y;
% endfor
            sum = before_lane(sum, sums);
% for i in range(8):
            counters[lane * 18 + ${2 * i}] = (ushort)sum;
            counters[lane * 18 + ${2 * i + 1}] = (ushort)(sum + pair${i}.x);
            sum += (uint)pair${i}.x + pair${i}.y;
% endfor
            // Loaded again: registers that are held while sums are made cost more than local memory does.
% for i in range(k.each):
            const key_t key${i} = held[mine + ${i}];
% if k.payload:
            const ushort from${i} = ${f"from[mine + {i}]" if part else f"lane * {k.each} + {i}"};
% endif
% endfor
            barrier(CLK_LOCAL_MEM_FENCE);
% for i in range(k.each):
            rank${i} += counters[COUNTER((int)(key${i} >> (shift + ${part})) & 15)];
            held[AT(rank${i})] = key${i};
% if k.payload:
            from[AT(rank${i})] = from${i};
% endif
% endfor
            for (int bits = 0; bits < 16; bits++) counters[COUNTER(bits)] = 0;
            barrier(CLK_LOCAL_MEM_FENCE);
        }
% endfor
        for (int place = lane; place < count; place += ${k.group}) {
            const int digit = DIGIT(held[AT(place)]);
            const int before = DIGIT(held[AT(max(place - 1, 0))]);
            if (digit != before) first[digit] = place;
            if (digit != before) past[before] = place;
            if (place == count - 1) past[digit] = count;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        const uint begin = first[lane];
        first[lane] = base[lane] - begin;
        base[lane] += past[lane] - begin;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int place = lane; place < count; place += ${k.group}) {
            const key_t key = held[AT(place)];
            const int target = (int)first[DIGIT(key)] + place;
% if not k.is_last:
            ${k.sorted_keys}[row * n + target] = key;
% endif
% if k.is_first and k.payload:
            const int c = start + from[AT(place)];
            ${k.sorted_carried}[row * n + target] = ${"c" if k.payload == "order" else f"{k.source}[{k.source_place}]"};
% elif k.is_last:
            const int c = target;
            ${k.target}[${k.target_place}] = ${f"{k.decoded}(key)" if not k.payload else f"{k.carried}[row * n + start + from[AT(place)]]"};
% elif k.payload:
            ${k.sorted_carried}[row * n + target] = ${k.carried}[row * n + start + from[AT(place)]];
% endif
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
% endif
}
