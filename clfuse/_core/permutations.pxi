"""Random orders on the host, as `clfuse.functions.random.permutations`: a part of `compiled.pyx`,
after `philox.pxi`.

Few elements have the order that NumPy's generator gives them with a Philox4x64-10 of its own: setting
the state of that takes ten times as long as what it draws. Of more, each finds its place as in
``kernels/lib/permutation.cl``.
"""

cdef extern from *:
    """
    /* NumPy's Philox: 256 bits of counter, from 1 on, make 256 random ones. */
    typedef struct {
        cf_word counter, key, position, buffer[4];
        uint32_t half;
        int next, has_half;
    } cf_numpys_bits;

    static inline cf_word clfuse_product(cf_word one, cf_word two, cf_word *high) {
    #ifdef __SIZEOF_INT128__
        const unsigned __int128 product = (unsigned __int128)one * two;
        *high = (cf_word)(product >> 64);
        return (cf_word)product;
    #else
        *high = clfuse_multiply_high(one, two);
        return one * two;
    #endif
    }

    static cf_word clfuse_next_word(cf_numpys_bits *bits) {
        cf_word word0, word1 = 0, word2 = 0, word3 = 0, key0 = bits->key, key1 = bits->position;
        int round;
        if (bits->next < 4) return bits->buffer[bits->next++];
        word0 = ++bits->counter;
        for (round = 0; round < 10; round++) {
            cf_word high0, high2;
            const cf_word low0 = clfuse_product(word0, 0xD2E7470EE14C6C93u, &high0);
            const cf_word low2 = clfuse_product(word2, 0xCA5A826395121157u, &high2);
            word0 = high2 ^ word1 ^ key0;
            word1 = low2;
            word2 = high0 ^ word3 ^ key1;
            word3 = low0;
            key0 += 0x9E3779B97F4A7C15u;
            key1 += 0xBB67AE8584CAA73Bu;
        }
        bits->buffer[0] = word0, bits->buffer[1] = word1;
        bits->buffer[2] = word2, bits->buffer[3] = word3;
        bits->next = 1;
        return word0;
    }

    static inline uint32_t clfuse_next_half(cf_numpys_bits *bits) {
        cf_word word;
        if (bits->has_half) {
            bits->has_half = 0;
            return bits->half;
        }
        word = clfuse_next_word(bits);
        bits->has_half = 1;
        bits->half = (uint32_t)(word >> 32);
        return (uint32_t)word;
    }

    /* What NumPy's generators ask of a bit generator (numpy/random/bitgen.h). */
    typedef struct {
        void *state;
        uint64_t (*next_uint64)(void *);
        uint32_t (*next_uint32)(void *);
        double (*next_double)(void *);
        uint64_t (*next_raw)(void *);
    } cf_bit_generator;

    static uint64_t clfuse_numpys_word(void *bits) {
        return clfuse_next_word((cf_numpys_bits *)bits);
    }
    static uint32_t clfuse_numpys_half(void *bits) {
        return clfuse_next_half((cf_numpys_bits *)bits);
    }
    static double clfuse_numpys_double(void *bits) {
        return (clfuse_next_word((cf_numpys_bits *)bits) >> 11) * 0x1p-53;
    }

    static void clfuse_place(cf_numpys_bits *bits, cf_word key, cf_word position) {
        memset(bits, 0, sizeof(cf_numpys_bits));
        bits->key = key;
        bits->position = position;
        bits->next = 4;
    }

    static void clfuse_introduce(cf_bit_generator *generator, cf_numpys_bits *bits) {
        generator->state = bits;
        generator->next_uint64 = generator->next_raw = clfuse_numpys_word;
        generator->next_uint32 = clfuse_numpys_half;
        generator->next_double = clfuse_numpys_double;
        clfuse_place(bits, 0, 0);
    }

    /* 0, 1, ... last, by rejection. */
    static inline uint32_t clfuse_up_to(cf_numpys_bits *bits, uint32_t last) {
        uint32_t mask = last, number;
        int shift;
        for (shift = 1; shift < 32; shift *= 2) mask |= mask >> shift;
        do number = clfuse_next_half(bits) & mask; while (number > last);
        return number;
    }

    /* `rows` orders of the numbers below `count`, one after the other, of one draw. */
    static void clfuse_numpys_orders(
        cf_word key, cf_word position, cf_whole *out, Py_ssize_t rows, Py_ssize_t count
    ) {
        cf_numpys_bits bits;
        Py_ssize_t row, place;
        clfuse_place(&bits, key, position);
        for (row = 0; row < rows; row++, out += count) {
            for (place = 0; place < count; place++) out[place] = place;
            for (place = count - 1; place > 0; place--) {
                const uint32_t other = clfuse_up_to(&bits, (uint32_t)place);
                const cf_whole kept = out[other];
                out[other] = out[place];
                out[place] = kept;
            }
        }
    }

    static inline uint32_t clfuse_mixed(uint32_t bits) {
        bits ^= bits >> 16;
        bits *= 0x85ebca6bu;
        bits ^= bits >> 13;
        bits *= 0xc2b2ae35u;
        return bits ^ bits >> 16;
    }

    /* The rounds of permutation.cl, round after round, so that what all elements share is made once. */
    CLFUSE_BY_VECTORS
    static void clfuse_shuffled_part(
        uint32_t *places, uint32_t count, uint32_t key, uint32_t other, Py_ssize_t elements
    ) {
        Py_ssize_t place;
        int round;
        for (round = 0; round < 48; round++) {
            uint32_t number;
            key += 0x9e3779b9u;
            other += 0xbb67ae85u;
            number = (uint32_t)((cf_word)clfuse_mixed(key ^ other) * count >> 32);
            for (place = 0; place < elements; place++) {
                const uint32_t at = places[place];
                const uint32_t partner = number - at + (at <= number ? 0 : count);
                const uint32_t larger = at > partner ? at : partner;
                const uint32_t bits = clfuse_mixed((larger ^ key) * 0x9e3779b1u + other);
                places[place] = bits >> 31 ? partner : at;
            }
        }
    }
    """
    ctypedef struct numpys_bits "cf_numpys_bits":
        pass
    ctypedef struct bit_generator "cf_bit_generator":
        pass
    void clfuse_place(numpys_bits *, word, word) nogil
    void clfuse_introduce(bit_generator *, numpys_bits *) nogil
    void clfuse_numpys_orders(word, word, long long *, Py_ssize_t, Py_ssize_t) nogil
    void clfuse_shuffled_part(
        unsigned int *, unsigned int, unsigned int, unsigned int, Py_ssize_t
    ) nogil

cdef enum:
    MOST_ORDERED = 0x7fffffff


cdef extern from "Python.h":
    object PyCapsule_New(void *, const char *, void *)


cdef class NumpysBits:
    """NumPy's Philox for NumPy's generators, which is placed without a state of Python's.

    `lock` is for them; `capsule` has no life of its own: who holds it holds this object, too."""

    cdef numpys_bits bits
    cdef bit_generator functions
    cdef readonly object lock

    def __init__(self, lock):
        self.lock = lock
        clfuse_introduce(&self.functions, &self.bits)

    @property
    def capsule(self):
        """What NumPy's generators take for a bit generator."""
        return PyCapsule_New(&self.functions, b"BitGenerator", NULL)

    def place(self, word key, word position):
        """Start anew, with this key."""
        clfuse_place(&self.bits, key, position)


def numpys_orders(word key, word position, Py_ssize_t rows, Py_ssize_t count):
    """Orders as NumPy's generator draws them for `permutation` and the rows of `permuted`, one after
    the other: (rows * count,) int64 of the numbers below `count`."""
    if not 0 <= count < MOST_ORDERED or rows < 0:
        raise ValueError("of so many elements")
    orders = np_empty(rows * count, INT64)
    if rows * count:
        clfuse_numpys_orders(
            key, position, <long long *>memory_of(orders, rows * count * 8), rows, count
        )
    return orders


def shuffled_places(object places, unsigned int count, object keys, object others):
    """Where the elements at `places` go, an array of uint32 in C order that is changed. The random
    numbers are such arrays, too, of as many elements or of one."""
    cdef Py_ssize_t elements = <Py_ssize_t>array_size(<PyObject *>places), start = 0, part
    cdef bint by_element = array_size(<PyObject *>keys) > 1
    cdef unsigned int *memory
    cdef unsigned int *key
    cdef unsigned int *other
    if not elements:
        return
    memory = <unsigned int *>memory_of(places, elements * 4)
    key = <unsigned int *>memory_of(keys, elements * 4 if by_element else 4)
    other = <unsigned int *>memory_of(others, elements * 4 if by_element else 4)
    while start < elements:
        part = min(elements - start, AT_A_TIME)
        if by_element:
            part = 1 + alike_from(key + start, other + start, part)
            clfuse_shuffled_part(memory + start, count, key[start], other[start], part)
        else:
            clfuse_shuffled_part(memory + start, count, key[0], other[0], part)
        start += part


cdef Py_ssize_t alike_from(unsigned int *key, unsigned int *other, Py_ssize_t most) noexcept:
    """How many that follow the first are as it is."""
    cdef Py_ssize_t place = 1
    while place < most and key[place] == key[0] and other[place] == other[0]:
        place += 1
    return place - 1
