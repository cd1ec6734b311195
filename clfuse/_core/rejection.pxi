"""Numbers that are drawn until one is accepted, on the host: a part of `compiled.pyx`, after
`philox.pxi`.

The formulas are those of the kernels, read from the same files (``kernels/lib``), so the bits are
theirs.
"""

cdef extern from *:
    """
    #define convert_int(value) ((int)(value))
    #define VECTOR_floor(value) floor(value)
    #ifdef CLFUSE_ALWAYS_INLINE
    #define inline inline CLFUSE_ALWAYS_INLINE
    #endif

    #include "elementary.cl"
    #include "logarithm.cl"
    #include "exponential.cl"
    #include "rejection.cl"
    #define CLFUSE_FUNCTIONS(T, I)                                                                 \
        DEFINE_VECTOR_LOG(T, I, int, T)                                                            \
        DEFINE_VECTOR_LOG1P(T, I, int, T)                                                          \
        DEFINE_VECTOR_EXP(T, I, int, T)
    CLFUSE_FUNCTIONS(double, cf_bits64)
    DEFINE_VECTOR_EXPM1(double, cf_bits64, int, double)
    DEFINE_CIRCULAR(sin, double, cf_bits64, int, double)
    DEFINE_CIRCULAR(cos, double, cf_bits64, int, double)
    DEFINE_GAMMA_DRAW(double, double, cf_bits64, cf_whole, cf_word)
    DEFINE_POISSON_DRAW(double, cf_whole, cf_word)
    DEFINE_BINOMIAL_DRAW(double, cf_whole, cf_word)
    DEFINE_HYPERGEOMETRIC_DRAW(double, cf_whole, cf_word)
    DEFINE_ZIPF_DRAW(double, cf_whole, cf_word)
    DEFINE_VON_MISES_DRAW(double, cf_whole, cf_word)
    #define fma fmaf
    #define sqrt sqrtf
    #define fabs fabsf
    CLFUSE_FUNCTIONS(float, cf_bits32)
    DEFINE_GAMMA_DRAW(float, float, cf_bits32, cf_whole, cf_word)
    #undef fma
    #undef sqrt
    #undef fabs
    #undef inline

    enum {
        CF_GAMMA64, CF_GAMMA32, CF_POISSON64, CF_BINOMIAL64, CF_HYPERGEOMETRIC64, CF_ZIPF64,
        CF_VON_MISES64
    };

    /* Element numbers, key, position, and parameters: one for each number, or one for all (a step of
     * 0). */
    typedef struct { const void *memory; Py_ssize_t step; } cf_given;
    #define CLFUSE_WHOLE(number) (((const cf_whole *)given[number].memory)[place * given[number].step])
    #define CLFUSE_REAL(T, number) (((const T *)given[number].memory)[place * given[number].step])
    #define CLFUSE_DRAWN(T, NAME, ...)                                                             \
        for (place = 0; place < count; place++)                                                    \
            ((T *)out)[place] = NAME##_draw_##T(                                                   \
                CLFUSE_WHOLE(0), CLFUSE_WHOLE(1), CLFUSE_WHOLE(2), __VA_ARGS__                     \
            );                                                                                     \
        break;

    CLFUSE_CLONES
    static void clfuse_drawn(int kind, const cf_given *given, void *out, Py_ssize_t count) {
        Py_ssize_t place;
        switch (kind) {
        case CF_GAMMA64: CLFUSE_DRAWN(double, gamma, CLFUSE_REAL(double, 3))
        case CF_GAMMA32: CLFUSE_DRAWN(float, gamma, CLFUSE_REAL(float, 3))
        case CF_POISSON64: CLFUSE_DRAWN(double, poisson, CLFUSE_REAL(double, 3))
        case CF_BINOMIAL64:
            CLFUSE_DRAWN(double, binomial, CLFUSE_REAL(double, 3), CLFUSE_REAL(double, 4))
        case CF_HYPERGEOMETRIC64:
            CLFUSE_DRAWN(
                double, hypergeometric,
                CLFUSE_REAL(double, 3), CLFUSE_REAL(double, 4), CLFUSE_REAL(double, 5)
            )
        case CF_ZIPF64: CLFUSE_DRAWN(double, zipf, CLFUSE_REAL(double, 3))
        case CF_VON_MISES64: CLFUSE_DRAWN(double, von_mises, CLFUSE_REAL(double, 3))
        }
    }
    """
    ctypedef struct given_operand "cf_given":
        const void *memory
        Py_ssize_t step
    void clfuse_drawn(int, const given_operand *, void *, Py_ssize_t) nogil

cdef enum:
    CF_GAMMA64
    CF_GAMMA32
    CF_POISSON64
    CF_BINOMIAL64
    CF_HYPERGEOMETRIC64
    CF_ZIPF64
    CF_VON_MISES64
    MOST_GIVEN = 6

DRAWN = {
    "gamma_draw_float64": CF_GAMMA64, "gamma_draw_float32": CF_GAMMA32,
    "poisson_draw_float64": CF_POISSON64, "binomial_draw_float64": CF_BINOMIAL64,
    "hypergeometric_draw_float64": CF_HYPERGEOMETRIC64, "zipf_draw_float64": CF_ZIPF64,
    "von_mises_draw_float64": CF_VON_MISES64,
}
"""What an operation of the op tables draws, for `drawn`."""
