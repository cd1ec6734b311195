## Passes of a radix sort on a GPU, a digit of ${k.digits} values each: a work-group takes a chunk of a row, tile by tile.
##
##    count     the group counts the digits of its chunk in local memory:   table[row][chunk][digit]
##    sums      a lane a digit: what is before each chunk among ${k.segment} of them, and what these have:  totals[row][segment][digit]
##    scan      the same over all segments of a row (or chunks, where they are few), behind what is before each digit
##    scatter   a tile of ${k.tile} keys is brought in order of its digits in local memory, by four bits at a time, and goes to
##              memory in runs of equal digits; equal ones stay in the order they were in
##
##              rank of a key among four bits:  keys of lower ones + equal ones of lanes before + equal ones before in its lane
${k.head}\
typedef ${k.key} key_t;

% if k.stage in ("scan", "scatter"):
// What is in the lanes before; `sums` are as many as there are lanes.
static inline uint before_lane(uint own, __local uint* sums)
{
    const int lane = get_local_id(0);
    uint sum = own;
    for (int distance = 1; distance < ${k.group}; distance *= 2) {
        sums[lane] = sum;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane >= distance) sum += sums[lane - distance];
        barrier(CLK_LOCAL_MEM_FENCE);
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
    __global const key_t* keys = ${k.keys} + row * n;
    __global uint* own = ${k.table} + get_group_id(0) * ${k.digits};
% endif
% if k.stage == "count":
    __local uint counts[${k.digits * k.copies}];
    for (int place = lane; place < ${k.digits * k.copies}; place += ${k.group}) counts[place] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int e = low + lane; e < high; e += ${k.group})
        atomic_inc((volatile __local uint*)counts + ((int)(keys[e] >> shift) & ${k.digits - 1}) * ${k.copies} + lane % ${k.copies});
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
    __local uint sums[${k.group}];
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
    __local ushort order[${k.tile + k.group}];
    __local ushort counters[${k.group * 18}];
    __local uint sums[${k.group}];
    __local uint base[${k.digits}];
    __local uint first[${k.digits}];
    const uint column = lane + (uint)lane / 16 * 2, mine = lane * ${k.each + 1};
    base[lane] = own[lane]${f" + {k.totals}[(row * ((chunks + {k.segment - 1}) / {k.segment}) + chunk / {k.segment}) * {k.digits} + lane]" if k.totals else ""};
    for (int start = low; start < high; start += ${k.tile}) {
        const int count = min(high - start, ${k.tile});
        // Past the end are the greatest keys, which stay behind all others.
        for (int place = lane; place < ${k.tile}; place += ${k.group})
            held[AT(place)] = place < count ? keys[start + place] : (key_t)~(key_t)0;
        for (int part = 0; part < ${k.digit_bits}; part += 4) {
            for (int bits = 0; bits < 16; bits++) counters[COUNTER(bits)] = 0;
            barrier(CLK_LOCAL_MEM_FENCE);
            // Of each key of the lane: where it was found, its four bits, how many equal ones are before it.
% for i in range(k.each):
            uint key${i} = part ? order[mine + ${i}] : lane * ${k.each} + ${i};
            key${i} = key${i} << 8 | ((uint)(held[AT(key${i})] >> (shift + part)) & 15) << 4;
            key${i} |= counters[COUNTER(key${i} >> 4 & 15)]++;
% endfor
            barrier(CLK_LOCAL_MEM_FENCE);
            uint sum = 0;
            for (int bits = 0; bits < 16; bits++) sum += counters[lane * 18 + bits];
            sum = before_lane(sum, sums);
            for (int bits = 0; bits < 16; bits++) {
                const ushort equal = counters[lane * 18 + bits];
                counters[lane * 18 + bits] = (ushort)sum;
                sum += equal;
            }
            barrier(CLK_LOCAL_MEM_FENCE);
% for i in range(k.each):
            order[AT(counters[COUNTER(key${i} >> 4 & 15)] + (key${i} & 15))] = key${i} >> 8;
% endfor
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        for (int place = lane; place < count; place += ${k.group}) {
            const int digit = DIGIT(held[AT(order[AT(place)])]);
            if (place == 0 || digit != DIGIT(held[AT(order[AT(place - 1)])])) first[digit] = place;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
% if k.payload:
% for i in range(k.each):
        int target${i};
        if (lane + ${i * k.group} < count) {
            const key_t key = held[AT(order[AT(lane + ${i * k.group})])];
            target${i} = row * n + (int)(base[DIGIT(key)] + lane + ${i * k.group} - first[DIGIT(key)]);
            ${k.sorted_keys}[target${i}] = key;
        }
% endfor
% else:
        for (int place = lane; place < count; place += ${k.group}) {
            const key_t key = held[AT(order[AT(place)])];
            ${k.sorted_keys}[row * n + (int)(base[DIGIT(key)] + place - first[DIGIT(key)])] = key;
        }
% endif
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int place = lane; place < count; place += ${k.group}) {
            const int digit = DIGIT(held[AT(order[AT(place)])]);
            if (place == count - 1 || digit != DIGIT(held[AT(order[AT(place + 1)])]))
                base[digit] += place + 1 - first[digit];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
% if k.payload:
        for (int place = lane; place < count; place += ${k.group})
            held[AT(place)] = (key_t)${k.carried}[row * n + start + place];
        barrier(CLK_LOCAL_MEM_FENCE);
% for i in range(k.each):
        if (lane + ${i * k.group} < count) ${k.sorted_carried}[target${i}] = held[AT(order[AT(lane + ${i * k.group})])];
% endfor
        barrier(CLK_LOCAL_MEM_FENCE);
% endif
    }
% endif
}
