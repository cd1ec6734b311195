/* Where an element goes in a random permutation of `count` numbers: swap-or-not.  V. T. Hoang, B. Morris,
 * P. Rogaway, An Enciphering Scheme Based on a Card Shuffle (CRYPTO 2012).
 *
 * In each round the elements are paired by a random number: x with number - x, modulo the count.  A bit
 * of the larger of both, which both find alike, says whether they change places.  So it is a permutation
 * for every count, and an element needs nothing of the others.  After 48 rounds an element is anywhere
 * but for a part in 2^48.  The hash is the end of MurmurHash3, whose bits each depend on all before.
 *
 * I and U are int and uint types of one width; `count` is below 2^31.
 */

#define MIX_BITS(H)                                                                                \
    H ^= H >> 16;                                                                                  \
    H *= 0x85ebca6bU;                                                                              \
    H ^= H >> 13;                                                                                  \
    H *= 0xc2b2ae35U;                                                                              \
    H ^= H >> 16;

#define DEFINE_SHUFFLED_PLACE(I, U)                                                                \
static inline U shuffled_place_##U(U place, U count, U key, U other)                               \
{                                                                                                  \
    for (int round = 0; round < 48; round++) {                                                     \
        key += 0x9e3779b9U;                                                                        \
        other += 0xbb67ae85U;                                                                      \
        U number = key ^ other;                                                                    \
        MIX_BITS(number)                                                                           \
        number = mul_hi(number, count);                                                            \
        const U partner = number - place + select(count, (U)(0), place <= number);                 \
        U bits = (max(place, partner) ^ key) * 0x9e3779b1U + other;                                \
        MIX_BITS(bits)                                                                             \
        place = select(place, partner, as_##I(bits) >> 31);                                        \
    }                                                                                              \
    return place;                                                                                  \
}
