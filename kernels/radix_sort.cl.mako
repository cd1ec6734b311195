## Radix sort of the rows of an array, ${k.digit_bits} bits a pass from the lowest; every stage is a launch.
##
##    encode    elements -> keys whose order as unsigned integers is the elements' own; what travels with them
##    count     a work-item counts the digits of its chunk of a row:   table[row][digit][chunk]
##    scan      a work-group a row turns counts into the places where each chunk's keys of a digit go
##    scatter   a work-item moves its chunk, in order: equal digits stay in the order they were in
##    decode    keys (or what travelled with them) -> the result
${k.head}\
typedef ${k.key} key_t;
typedef ${k.bits} bits_t;
% if k.stage in ("encode", "decode"):
#define SIGN ((bits_t)1 << ${k.nbits - 1})
#define INFINITE ${k.infinity}
#define QUIET ${k.nan}
% endif

__kernel void ${k.name}(${k.signature})
{
% if k.stage != "scan" and (k.in_pieces or k.stage in ("count", "scatter")):
    const int item = get_global_id(0);
    if (item >= rows * chunks) return;
    const int row = item / chunks, chunk = item - row * chunks;
    const int low = chunk * length, high = min(low + length, n);
% endif
% if k.stage in ("encode", "decode"):
% if k.in_pieces:
% for line in k.decode:
    ${line}
% endfor
    for (int c = low; c < high; c++) {
        const int e = row * n + c;
% else:
    const int count = rows * n;
    for (int e = get_global_id(0); e < count; e += get_global_size(0)) {
        const int row = e / n, c = e - row * n;
% for line in k.decode:
        ${line}
% endfor
% endif
% endif
% if k.stage == "encode":
        const bits_t b = ${k.source}[${k.place}];
        ${k.keys}[e] = ${k.encoded}(b);
% if k.payload == "order":
        ${k.carried}[e] = c;
% elif k.payload == "bits":
        ${k.carried}[e] = b;
% endif
    }
% elif k.stage == "decode":
% if k.payload == "order":
        ${k.target}[${k.place}] = (long)${k.carried}[e];
% elif k.payload == "bits":
        ${k.target}[${k.place}] = ${k.carried}[e];
% else:
        const key_t key = ${k.keys}[e];
        ${k.target}[${k.place}] = ${k.decoded}(key);
% endif
    }
% elif k.stage == "scan":
    const int lane = get_local_id(0), count = chunks * ${k.digits};
    __global uint* table = ${k.table} + get_group_id(0) * count;
    uint before = 0;
% if k.in_pieces:
    for (int place = 0; place < count; place++) {
        const uint own = table[place];
        table[place] = before;
        before += own;
    }
% else:
    __local uint sums[${k.group}];
    for (int base = 0; base < count; base += ${k.group}) {
        const int place = base + lane;
        const uint own = place < count ? table[place] : 0;
        sums[lane] = own;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int distance = 1; distance < ${k.group}; distance *= 2) {
            const uint other = lane >= distance ? sums[lane - distance] : 0;
            barrier(CLK_LOCAL_MEM_FENCE);
            sums[lane] += other;
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        if (place < count) table[place] = before + sums[lane] - own;
        before += sums[${k.group - 1}];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
% endif
% else:
    __global const key_t* keys = ${k.keys} + row * n;
    __global uint* table = ${k.table} + row * chunks * ${k.digits} + chunk;
    uint places[${k.digits}];
% if k.stage == "count":
    for (int d = 0; d < ${k.digits}; d++) places[d] = 0;
    for (int e = low; e < high; e++) places[(int)(keys[e] >> shift) & ${k.digits - 1}]++;
    for (int d = 0; d < ${k.digits}; d++) table[d * chunks] = places[d];
% else:
    for (int d = 0; d < ${k.digits}; d++) places[d] = table[d * chunks];
    for (int e = low; e < high; e++) {
        const key_t key = keys[e];
        const int place = row * n + (int)places[(int)(key >> shift) & ${k.digits - 1}]++;
        ${k.sorted_keys}[place] = key;
% if k.payload:
        ${k.sorted_carried}[place] = ${k.carried}[row * n + e];
% endif
    }
% endif
% endif
}
