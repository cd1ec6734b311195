/* double -> float on the way to half, without rounding twice.
 *
 * Rounding to odd (Boldo and Melquiond 2008): truncate, and set the last bit where something was lost.
 * A float has more than two bits beyond a half, so rounding that to half rounds the double itself.
 * F, D, I, L are float, double, int and long with the same lanes.
 */
#define DEFINE_ROUND_TO_ODD(F, D, I, L)                                                            \
static inline F round_to_odd_##F(D value)                                                          \
{                                                                                                  \
    const F nearest = convert_##F(value);                                                          \
    const D back = convert_##D(nearest);                                                           \
    const I bits = as_##I(nearest);                                                                \
    const L away = fabs(back) > fabs(value);                                                       \
    const L lost = (back < value) || (back > value);                                               \
    const L whole = convert_##L(bits);                                                             \
    const L truncated = away ? whole - (L)(1) : whole;                                             \
    return as_##F(convert_##I(lost ? (truncated | (L)(1)) : whole));                               \
}

/* Halves in memory are ushorts.  vload_half would do, but PoCL 3.1's vload_half8 and wider fault on
 * addresses that are not aligned to the whole vector, which the standard does not ask for.
 *
 * Scaling by 2^112 moves the exponent's bias, and makes normal floats of subnormal halves.
 * F, I, U, H are float, int, uint and ushort with the same lanes.
 */
#define DEFINE_FROM_HALF(F, I, U, H)                                                               \
static inline F from_half_##F(H bits)                                                              \
{                                                                                                  \
    const U wide = convert_##U(bits);                                                              \
    const U magnitude = (wide & (U)(0x7fff)) << (U)(13);                                           \
    const F finite = as_##F(magnitude) * (F)(0x1p112f);                                            \
    const F special = as_##F(magnitude | (U)(0x7f800000));                                         \
    const F chosen = as_##I(magnitude) >= (I)(0x0f800000) ? special : finite;                      \
    return as_##F(as_##U(chosen) | ((wide & (U)(0x8000)) << (U)(16)));                             \
}

/* The bits of a float that is a half already (see round_to_half). */
#define DEFINE_TO_HALF(F, I, U, H)                                                                 \
static inline H to_half_##F(F value)                                                               \
{                                                                                                  \
    const U sign = (as_##U(value) >> (U)(16)) & (U)(0x8000);                                       \
    const F magnitude = fabs(value);                                                               \
    const U finite = as_##U(magnitude * (F)(0x1p-112f)) >> (U)(13);                                \
    const I infinite = magnitude == (F)(INFINITY);                                                 \
    const U number = infinite ? (U)(0x7c00) : finite;                                              \
    const U known = magnitude == magnitude ? number : (U)(0x7e00);                                 \
    return convert_##H(known | sign);                                                              \
}
