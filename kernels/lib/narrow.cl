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
