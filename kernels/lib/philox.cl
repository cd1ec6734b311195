/* Random bits by counter: J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, Parallel random numbers:
 * as easy as 1, 2, 3 (SC 2011), Philox4x32-10.  The op table's `define` texts expand these macros.
 *
 * Element i of a stream is a function of (i, key, stream) and of nothing else: the counter's low 64
 * bits are i, its high 64 bits the stream.  Of the 128 bits that come out the first 64 are
 * philox_bits, the others philox_more_bits: who wants both pays once, the compiler sees equal rounds.
 * Measured against it: two neighbours that share a call, by swapping lanes, take 0.8 of the time
 * without the test that they are neighbours and 1.0 with it (PoCL 3.1 and Intel's runtime, AVX-512).
 *
 * I and U are long and ulong types of one width.  The four 32-bit words are kept in lanes of 64 bits so
 * that a product is one multiplication (pmuludq) and no lane is ever converted.  What is above the
 * 32 bits of a word is garbage, masked where it is multiplied and at the end.
 */

#define PHILOX_ROUND(U)                                                                            \
    {                                                                                              \
        const U product0 = (word0 & low) * (U)(0xd2511f53);                                        \
        const U product2 = (word2 & low) * (U)(0xcd9e8d57);                                        \
        word0 = (product2 >> bits) ^ word1 ^ key0;                                                 \
        word1 = product2;                                                                          \
        word2 = (product0 >> bits) ^ word3 ^ key1;                                                 \
        word3 = product0;                                                                          \
        key0 += (U)(0x9e3779b9);                                                                   \
        key1 += (U)(0xbb67ae85);                                                                   \
    }

/* Written out: PoCL keeps a loop of ten rounds, which takes 1.15 times as long. */
#define DEFINE_PHILOX(NAME, I, U, FIRST, SECOND)                                                   \
static inline U NAME##_##I(I index, I key, I stream)                                               \
{                                                                                                  \
    const U low = (U)(0xffffffff), bits = (U)(32);                                                 \
    U word0 = as_##U(index), word1 = word0 >> bits;                                                \
    U word2 = as_##U(stream), word3 = word2 >> bits;                                               \
    U key0 = as_##U(key), key1 = key0 >> bits;                                                     \
    PHILOX_ROUND(U) PHILOX_ROUND(U) PHILOX_ROUND(U) PHILOX_ROUND(U) PHILOX_ROUND(U)                \
    PHILOX_ROUND(U) PHILOX_ROUND(U) PHILOX_ROUND(U) PHILOX_ROUND(U) PHILOX_ROUND(U)                \
    return (FIRST & low) | (SECOND << bits);                                                       \
}

/* ---- numbers from 64 random bits; U is a ulong type, F a type of floats, both of one width ---- */

/* As many leading bits as the mantissa holds: every value is a multiple of 2^-53 or 2^-24 below 1. */
#define DEFINE_UNIFORM_OF_BITS_float64(U, F)                                                       \
static inline F uniform_of_bits_##F(U bits)                                                        \
{                                                                                                  \
    return convert_##F(bits >> (U)(11)) * (F)(0x1p-53);                                            \
}

#define DEFINE_UNIFORM_OF_BITS_float32(U, F)                                                       \
static inline F uniform_of_bits_##F(U bits)                                                        \
{                                                                                                  \
    return convert_##F(bits >> (U)(40)) * (F)(0x1p-24f);                                           \
}

/* The middles of 2^52 (float: 2^23) equal parts of (0, 1): never 0, never 1, and 1 minus one is
 * exact. */
#define DEFINE_OPEN_OF_BITS_float64(U, F)                                                          \
static inline F open_of_bits_##F(U bits)                                                           \
{                                                                                                  \
    return (convert_##F(bits >> (U)(12)) + (F)(0.5)) * (F)(0x1p-52);                               \
}

#define DEFINE_OPEN_OF_BITS_float32(U, F)                                                          \
static inline F open_of_bits_##F(U bits)                                                           \
{                                                                                                  \
    return (convert_##F(bits >> (U)(41)) + (F)(0.5f)) * (F)(0x1p-23f);                             \
}

/* For logarithms: above 0, at most 1, and the finer the smaller. */
#define DEFINE_POSITIVE_OF_BITS(U, F)                                                              \
static inline F positive_of_bits_##F(U bits)                                                       \
{                                                                                                  \
    return (convert_##F(bits) + (F)(0.5f)) * (F)(0x1p-64f);                                        \
}
