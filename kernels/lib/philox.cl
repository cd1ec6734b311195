/* Random bits by counter: J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, Parallel random numbers:
 * as easy as 1, 2, 3 (SC 2011), Philox4x32-10.  The op table's `define` texts expand these macros.
 *
 * Element i of a stream is a function of (i, key, stream) and of nothing else: the counter's low 64
 * bits are i, its high 64 bits the stream, and the first 64 of the 128 bits that come out are used.
 *
 * I and U are long and ulong types of one width.  The four 32-bit words are kept in lanes of 64 bits so
 * that a product is one multiplication (pmuludq) and no lane is ever converted.  What is above the
 * 32 bits of a word is garbage, masked where it is multiplied and at the end.
 */

#define DEFINE_PHILOX(I, U)                                                                        \
static inline U philox_bits_##I(I index, I key, I stream)                                          \
{                                                                                                  \
    const U low = (U)(0xffffffff), bits = (U)(32);                                                 \
    U word0 = as_##U(index), word1 = word0 >> bits;                                                \
    U word2 = as_##U(stream), word3 = word2 >> bits;                                               \
    U key0 = as_##U(key), key1 = key0 >> bits;                                                     \
    for (int round = 0; round < 10; round++) {                                                     \
        const U product0 = (word0 & low) * (U)(0xd2511f53);                                        \
        const U product2 = (word2 & low) * (U)(0xcd9e8d57);                                        \
        word0 = (product2 >> bits) ^ word1 ^ key0;                                                 \
        word1 = product2;                                                                          \
        word2 = (product0 >> bits) ^ word3 ^ key1;                                                 \
        word3 = product0;                                                                          \
        key0 += (U)(0x9e3779b9);                                                                   \
        key1 += (U)(0xbb67ae85);                                                                   \
    }                                                                                              \
    return (word0 & low) | (word1 << bits);                                                        \
}

/* As many leading bits as the mantissa holds: every value is a multiple of 2^-53 or 2^-24 below 1. */
#define DEFINE_PHILOX_UNIFORM_FLOAT64(I, U, F)                                                     \
static inline F philox_uniform_float64_##I(I index, I key, I stream)                               \
{                                                                                                  \
    return convert_##F(philox_bits_##I(index, key, stream) >> (U)(11)) * (F)(0x1p-53);             \
}

#define DEFINE_PHILOX_UNIFORM_FLOAT32(I, U, F)                                                     \
static inline F philox_uniform_float32_##I(I index, I key, I stream)                               \
{                                                                                                  \
    return convert_##F(philox_bits_##I(index, key, stream) >> (U)(40)) * (F)(0x1p-24f);            \
}
