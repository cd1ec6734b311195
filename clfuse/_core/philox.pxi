"""Random numbers of small draws on the host, as `clfuse.functions.random.bits`: a part of
`compiled.pyx`.

The formulas are those of the kernels, read from the same files (``kernels/lib``), so the bits are
theirs.
"""

cdef extern from *:
    """
    #include <math.h>
    #include <stdint.h>
    #include <string.h>

    /* What OpenCL C says otherwise. Vectors have one lane here. */
    typedef unsigned long long cf_word;  /* as Cython has them */
    typedef long long cf_whole;
    typedef int64_t cf_bits64;
    typedef int32_t cf_bits32;
    static inline cf_whole as_cf_whole(cf_word value) { return (cf_whole)value; }
    static inline cf_word as_cf_word(cf_whole value) { return (cf_word)value; }
    static inline cf_bits64 as_cf_bits64(double value) {
        cf_bits64 bits; memcpy(&bits, &value, 8); return bits;
    }
    static inline double as_double(cf_bits64 value) {
        double number; memcpy(&number, &value, 8); return number;
    }
    static inline cf_bits32 as_cf_bits32(float value) {
        cf_bits32 bits; memcpy(&bits, &value, 4); return bits;
    }
    static inline float as_float(cf_bits32 value) {
        float number; memcpy(&number, &value, 4); return number;
    }
    #define convert_double(value) ((double)(value))
    #define convert_float(value) ((float)(value))
    #define ANY_LANE(I, condition) (condition)
    #ifndef M_LN2
    #define M_LN2 0.693147180559945309417232121458176568
    #endif
    #ifndef M_SQRT2
    #define M_SQRT2 1.41421356237309504880168872420969808
    #endif
    #define M_LN2_F 0.693147180559945309417232121458176568f
    #define M_SQRT2_F 1.41421356237309504880168872420969808f

    /* A fused multiply-add is an instruction where the processor has it, else a call. Compilers ask
     * for levels by what a processor can do, for "haswell" by its name: AMD's have another. */
    #if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
    #if __GNUC__ >= 12
    #define CLFUSE_CLONES __attribute__((target_clones("arch=x86-64-v3", "default")))
    #define CLFUSE_BY_VECTORS                                                                      \
        __attribute__((                                                                            \
            optimize("O3"), target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")           \
        ))
    #else
    #define CLFUSE_CLONES __attribute__((target_clones("arch=haswell", "default")))
    #define CLFUSE_BY_VECTORS CLFUSE_CLONES __attribute__((optimize("O3")))
    #endif
    #define CLFUSE_ALWAYS_INLINE __attribute__((always_inline))  /* so that they are cloned, too */
    #define inline inline CLFUSE_ALWAYS_INLINE
    #else
    #define CLFUSE_CLONES
    #define CLFUSE_BY_VECTORS
    #endif

    #include "philox.cl"
    #include "normal.cl"
    DEFINE_PHILOX(philox_bits, cf_whole, cf_word, word0, word1)
    DEFINE_PHILOX(philox_more_bits, cf_whole, cf_word, word2, word3)
    DEFINE_UNIFORM_OF_BITS_float64(cf_word, double)
    DEFINE_OPEN_OF_BITS_float64(cf_word, double)
    DEFINE_POSITIVE_OF_BITS(cf_word, double)
    DEFINE_NORMAL_OF_BITS(double, double, cf_bits64, cf_whole, cf_word)
    DEFINE_UNIFORM_OF_BITS_float32(cf_word, float)
    DEFINE_OPEN_OF_BITS_float32(cf_word, float)
    DEFINE_POSITIVE_OF_BITS(cf_word, float)
    #define fma fmaf
    #define sqrt sqrtf
    DEFINE_NORMAL_OF_BITS(float, float, cf_bits32, cf_whole, cf_word)
    #undef fma
    #undef sqrt
    #undef inline

    enum {
        CF_BITS, CF_MORE_BITS, CF_UNIFORM64, CF_OPEN64, CF_POSITIVE64, CF_NORMAL64, CF_UNIFORM32,
        CF_OPEN32, CF_POSITIVE32, CF_NORMAL32
    };

    enum { CF_PART = 512, CF_ROUNDS = 10 };

    /* A whole number below 2^52 as a float without an instruction for it, which AVX2 has not. */
    #define CLFUSE_SMALL_WORD(word) (as_double((cf_bits64)((word) | 0x4330000000000000u)) - 0x1p52)

    /* Normal numbers in the middle of their distribution, all but a thousandth, by vectors; the others
     * follow. The steps are those of normal.cl, with shifts and conversions that AVX2 has. */
    CLFUSE_BY_VECTORS
    static void clfuse_normal_middles(
        const cf_word *bits, double *out, double *logarithms, Py_ssize_t count
    ) {
        Py_ssize_t place;
        for (place = 0; place < count; place++) {
            const double upper = CLFUSE_SMALL_WORD(bits[place] >> 32 ^ 0x80000000u) - 0x1p31;
            const double whole = upper * 0x1p21 + CLFUSE_SMALL_WORD(bits[place] >> 11 & 0x1fffff);
            const double below = -1.0 - whole, size = whole > below ? whole : below;
            const double x = (whole + 0.5) * 0x1p-52;
            const double rest = (0x1.ffffffffffffep51 - size + 0.5) * 0x1p-52;
            const double square_rest = rest * (2.0 - rest);
            const cf_word bits_of = (cf_word)as_cf_bits64(square_rest);
            const cf_word raised = (bits_of - LEAST_MANTISSA_double + ((cf_word)1 << 62)) >> 52;
            const double f = as_double((cf_bits64)(bits_of - ((raised - 1024) << 52))) - 1.0;
            const double minus_k = 1024.0 - CLFUSE_SMALL_WORD(raised);
            const double s = f / (f + 2.0), z = s * s;
            double series, p, t, w;
            LOG_SERIES_double(double, series, z)
            w = fma(minus_k, LN_2_double, s * (f - series * z) - f);
            t = w - MIDDLE_ORIGIN_double;
            NORMAL_MIDDLE_double(double, p, t)
            logarithms[place] = w;
            out[place] = SQRT_2_double * x * p;
        }
    }

    CLFUSE_CLONES
    static void clfuse_normals(const cf_word *bits, double *out, Py_ssize_t count) {
        double logarithms[CF_PART];
        cf_word kept[CF_PART];
        Py_ssize_t place;
        while (count > 0) {
            const Py_ssize_t part = count < CF_PART ? count : CF_PART;
            memcpy(kept, bits, part * sizeof(cf_word));  /* they may lie where the numbers go */
            clfuse_normal_middles(kept, out, logarithms, part);
            for (place = 0; place < part; place++)
                if (logarithms[place] >= MIDDLE_END_double)
                    out[place] = normal_of_bits_double(kept[place]);
            bits += part;
            out += part;
            count -= part;
        }
    }

    #define CLFUSE_EACH(T, FUNCTION)                                                               \
        for (place = 0; place < count; place++) ((T *)out)[place] = FUNCTION(bits[place]);         \
        break;

    /* What `kind` makes of random bits; the bits themselves may lie where the numbers go. */
    CLFUSE_CLONES
    static void clfuse_made_of(int kind, const cf_word *bits, void *out, Py_ssize_t count) {
        Py_ssize_t place;
        switch (kind) {
        case CF_UNIFORM64: CLFUSE_EACH(double, uniform_of_bits_double)
        case CF_OPEN64: CLFUSE_EACH(double, open_of_bits_double)
        case CF_POSITIVE64: CLFUSE_EACH(double, positive_of_bits_double)
        case CF_NORMAL64: clfuse_normals(bits, (double *)out, count); break;
        case CF_UNIFORM32: CLFUSE_EACH(float, uniform_of_bits_float)
        case CF_OPEN32: CLFUSE_EACH(float, open_of_bits_float)
        case CF_POSITIVE32: CLFUSE_EACH(float, positive_of_bits_float)
        case CF_NORMAL32: CLFUSE_EACH(float, normal_of_bits_float)
        default: memmove(out, bits, count * sizeof(cf_word));
        }
    }

    /* Random bits by counter, of at most CF_PART numbers in `index`, or of those from `first` on: both
     * words, or one of them where the other is NULL. By words of 32 bits and round after round, other
     * than in philox.cl: compilers have instructions for several products of such words. */
    CLFUSE_BY_VECTORS
    static void clfuse_words_of_part(
        const cf_whole *index, cf_whole first, cf_whole key, cf_whole position, cf_word *out,
        cf_word *more, Py_ssize_t count
    ) {
        uint32_t words0[CF_PART], words1[CF_PART], words2[CF_PART], words3[CF_PART];
        uint32_t key0 = (uint32_t)key, key1 = (uint32_t)((cf_word)key >> 32);
        Py_ssize_t place;
        int round;
        for (place = 0; place < count; place++) {
            const cf_word counter = (cf_word)(index ? index[place] : first + place);
            words0[place] = (uint32_t)counter;
            words1[place] = (uint32_t)(counter >> 32);
            words2[place] = (uint32_t)position;
            words3[place] = (uint32_t)((cf_word)position >> 32);
        }
        for (round = 0; round < CF_ROUNDS; round++) {
            for (place = 0; place < count; place++) {
                const cf_word product0 = (cf_word)words0[place] * 0xd2511f53u;
                const cf_word product2 = (cf_word)words2[place] * 0xcd9e8d57u;
                words0[place] = (uint32_t)(product2 >> 32) ^ words1[place] ^ key0;
                words1[place] = (uint32_t)product2;
                words2[place] = (uint32_t)(product0 >> 32) ^ words3[place] ^ key1;
                words3[place] = (uint32_t)product0;
            }
            key0 += 0x9e3779b9u;
            key1 += 0xbb67ae85u;
        }
        if (more)
            for (place = 0; place < count; place++)
                more[place] = words2[place] | (cf_word)words3[place] << 32;
        if (out)
            for (place = 0; place < count; place++)
                out[place] = words0[place] | (cf_word)words1[place] << 32;
    }

    static void clfuse_bits_of(
        int more, const cf_whole *index, cf_whole first, cf_whole key, cf_whole position,
        cf_word *out, Py_ssize_t count
    ) {
        while (count > 0) {
            const Py_ssize_t part = count < CF_PART ? count : CF_PART;
            clfuse_words_of_part(
                index, first, key, position, more ? NULL : out, more ? out : NULL, part
            );
            if (index) index += part;
            first += part;
            out += part;
            count -= part;
        }
    }

    /* The upper 64 bits of a product of 128. */
    static inline cf_word clfuse_multiply_high(cf_word one, cf_word two) {
        const cf_word low = 0xffffffff;
        const cf_word middle = (one >> 32) * (two & low) + ((one & low) * (two & low) >> 32);
        const cf_word other = (one & low) * (two >> 32) + (middle & low);
        return (one >> 32) * (two >> 32) + (middle >> 32) + (other >> 32);
    }
    """
    ctypedef unsigned long long word "cf_word"
    word philox_bits_cf_whole(long long, long long, long long) nogil
    word philox_more_bits_cf_whole(long long, long long, long long) nogil
    void clfuse_made_of(int, word *, void *, Py_ssize_t) nogil
    void clfuse_bits_of(
        int, const long long *, long long, long long, long long, word *, Py_ssize_t
    ) nogil
    word clfuse_multiply_high(word, word) nogil

cdef extern from "numpy/arrayobject.h":
    npy_intp PyArray_NBYTES(PyArrayObject *)

cdef enum:
    CF_BITS
    CF_MORE_BITS
    CF_UNIFORM64
    CF_OPEN64
    CF_POSITIVE64
    CF_NORMAL64
    CF_UNIFORM32
    CF_OPEN32
    CF_POSITIVE32
    CF_NORMAL32
    AT_A_TIME = 512

MADE_OF_BITS = {
    "philox_bits": CF_BITS, "philox_more_bits": CF_MORE_BITS,
    "uniform_of_bits_float64": CF_UNIFORM64, "open_of_bits_float64": CF_OPEN64,
    "positive_of_bits_float64": CF_POSITIVE64, "normal_of_bits_float64": CF_NORMAL64,
    "uniform_of_bits_float32": CF_UNIFORM32, "open_of_bits_float32": CF_OPEN32,
    "positive_of_bits_float32": CF_POSITIVE32, "normal_of_bits_float32": CF_NORMAL32,
}
"""What an operation of the op tables makes of random bits, for the functions here."""


cdef void *memory_of(object array, Py_ssize_t nbytes) except NULL:
    """Where the elements of an array of NumPy's lie, in C order, which takes so many bytes."""
    cdef PyObject *asked = <PyObject *>array
    if type(array) is not NUMPY or not array_flags(asked) & IN_C_ORDER:
        raise TypeError("an array in C order is wanted")
    if PyArray_NBYTES(<PyArrayObject *>asked) < nbytes:
        raise ValueError("the array is too small")
    return array_data(asked)


cdef inline Py_ssize_t bytes_of_a_number(int kind) noexcept:
    return 4 if kind >= CF_UNIFORM32 else 8


def draw(int kind, object out, Py_ssize_t count, word key, word position):
    """Fill `out` with the `count` numbers of the draw at `position`, made as `kind` says."""
    cdef Py_ssize_t size = bytes_of_a_number(kind)
    cdef char *memory
    cdef word bits[AT_A_TIME]
    cdef Py_ssize_t start = 0, part
    if not count:
        return
    memory = <char *>memory_of(out, count * size)
    while start < count:
        part = min(count - start, AT_A_TIME)
        clfuse_bits_of(
            kind == CF_MORE_BITS, NULL, start, <long long>key, <long long>position, bits, part
        )
        clfuse_made_of(kind, bits, memory + start * size, part)
        start += part


def draw_below(
    object out, Py_ssize_t count, word key, word position, word limit, long long low
):
    """The same of whole numbers from `low` on, `limit` of them, at most 2**32; `out` is of
    int64."""
    cdef long long *memory
    cdef Py_ssize_t place
    cdef word bits
    if not count:
        return
    memory = <long long *>memory_of(out, count * 8)
    clfuse_bits_of(0, NULL, 0, <long long>key, <long long>position, <word *>memory, count)
    for place in range(count):
        bits = <word>memory[place]
        memory[place] = low + <long long>clfuse_multiply_high(bits, limit)


cdef double count_of(object size) except -1:
    """How many numbers a `size` of integers asks for; 0 for any other."""
    cdef double count = 1, extent
    if type(size) is int:
        return max(extent_of(size), 0)
    if type(size) is not tuple:
        return 0
    for item in <tuple>size:
        extent = extent_of(item) if type(item) is int else 0
        if extent < 1:
            return 0
        count *= extent
    return count


cdef object device_of_few(double count, double small, double weight):
    """The device for which so many numbers are made at the call, or None: not while somebody
    traces, and not more than `small` unless NumPy would do the work, of `weight` each."""
    if count == 0 or tracers is None or tracers[0]:
        return None
    if not settings:
        read_settings()
    if most_additions <= 0 or (count > small and not is_known(weight * count)):
        return None
    return current_device()


def device_of_draws(object size, double small, double weight):
    """`device_of_few` of numbers of that `size`."""
    return device_of_few(count_of(size), small, weight)


def few(
    generator, int kind, object size, double small, double weight, double start, double scale,
    log=None,
):
    """A small draw of float64 as `draw` fills them (minus their logarithms, if `log` is NumPy's),
    scaled, from `start` on, as an array of ours; None where something else has to make it."""
    cdef Py_ssize_t place, count = <Py_ssize_t>min(count_of(size), 1e15)
    cdef double *memory
    device = device_of_few(count, small, weight)
    if device is None:
        return None
    key, position = generator._key, advance(generator, 1)
    made_here = np_empty(size)
    draw(kind, made_here, count, key, position)
    memory = <double *>memory_of(made_here, count * 8)
    if log is not None:
        log(made_here, made_here)
        for place in range(count):
            memory[place] = 0.0 - memory[place]
    if scale != 1.0 or start != 0.0:
        for place in range(count):
            memory[place] = memory[place] * scale + start
    return made(made_here, None, device)


def few_below(generator, object size, double small, double weight, word limit, long long low):
    """The same of whole numbers, as `draw_below` fills them."""
    cdef Py_ssize_t count = <Py_ssize_t>min(count_of(size), 1e15)
    device = device_of_few(count, small, weight)
    if device is None:
        return None
    key, position = generator._key, advance(generator, 1)
    made_here = np_empty(size, INT64)
    draw_below(made_here, count, key, position, limit, low)
    return made(made_here, None, device)


def number(int kind, word key, word position):
    """The first number of the draw at `position`, of float64, as one of Python's."""
    cdef word bits = philox_bits_cf_whole(0, <long long>key, <long long>position)
    cdef double made = 0
    clfuse_made_of(kind, &bits, &made, 1)
    return made


def number_below(word key, word position, word limit):
    """The same of a whole number below `limit`, which is at most 2**32."""
    return clfuse_multiply_high(
        philox_bits_cf_whole(0, <long long>key, <long long>position), limit
    )


def both_words(word key, word position):
    """128 random bits as two numbers, as `functions.random.bits.philox` of index 0."""
    cdef long long by = <long long>key, at = <long long>position
    return philox_bits_cf_whole(0, by, at), philox_more_bits_cf_whole(0, by, at)


def bits_of(int kind, object index, object key, object position, object out):
    """Random bits by counter into `out`; all are arrays of 64 bits in C order, of as many elements
    as `out`, or of one."""
    cdef Py_ssize_t count = <Py_ssize_t>array_size(<PyObject *>out)
    cdef Py_ssize_t place
    cdef Py_ssize_t step = array_size(<PyObject *>index) == count
    cdef Py_ssize_t key_step = array_size(<PyObject *>key) == count
    cdef Py_ssize_t draw_step = array_size(<PyObject *>position) == count
    cdef long long *at
    cdef long long *by
    cdef long long *draws
    cdef word *made
    if not count:
        return
    at = <long long *>memory_of(index, 8)
    by = <long long *>memory_of(key, 8)
    draws = <long long *>memory_of(position, 8)
    made = <word *>memory_of(out, count * 8)
    if step and not key_step and not draw_step:
        clfuse_bits_of(kind == CF_MORE_BITS, at, 0, by[0], draws[0], made, count)
        return
    for place in range(count):
        if kind == CF_MORE_BITS:
            made[place] = philox_more_bits_cf_whole(
                at[place * step], by[place * key_step], draws[place * draw_step]
            )
        else:
            made[place] = philox_bits_cf_whole(
                at[place * step], by[place * key_step], draws[place * draw_step]
            )


def numbers_made(int kind, object bits, object out):
    """What `kind` makes of random bits, into `out`: both in C order, of as many elements."""
    cdef Py_ssize_t count = <Py_ssize_t>array_size(<PyObject *>out)
    if count:
        clfuse_made_of(
            kind, <word *>memory_of(bits, count * 8),
            memory_of(out, count * bytes_of_a_number(kind)), count,
        )
