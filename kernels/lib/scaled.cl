/* Numbers with an exponent of their own: .x has the digits, from 1 up to 2, and the bits of .y how often
 * they are doubled, and how far that went up and down while the product was made. So products of any
 * of them neither overflow nor vanish, in whichever order they are made; and in the end it is known
 * whether the running product from 1 on did: then it stays infinite, or zero, as one after another.
 *
 *     exponent     FIELD + 1 bits, with a sign       what is farther off is out of range in any case
 *     up, down     FIELD bits each
 *     sinks        1 bit: it was lowest before it was highest
 *
 * R is the real type, I and U the integers of its size, BITS of them, DIGITS the bits of its significand
 * that are stored, BIAS that of its exponent. Zeros, infinities and NaN are their own digits; a zero
 * goes down as far as one can, an infinity up. `from_scaled` has the bias and the
 * digits of the dtype that the products are of.
 */
#define DEFINE_SCALED(R, I, U, BITS, FIELD, DIGITS, BIAS)                                          \
static inline int scaled_exponent_##R(R##2 a)                                                      \
{                                                                                                  \
    return (int)(as_##I(as_##U(a.y) << (BITS - FIELD - 1)) >> (BITS - FIELD - 1));                 \
}                                                                                                  \
static inline int scaled_up_##R(R##2 a)                                                            \
{                                                                                                  \
    return (int)(as_##U(a.y) >> (FIELD + 1)) & ((1 << FIELD) - 1);                                 \
}                                                                                                  \
static inline int scaled_down_##R(R##2 a)                                                          \
{                                                                                                  \
    return (int)(as_##U(a.y) >> (2 * FIELD + 1)) & ((1 << FIELD) - 1);                             \
}                                                                                                  \
static inline int scaled_sinks_##R(R##2 a)                                                         \
{                                                                                                  \
    return (int)(as_##U(a.y) >> (3 * FIELD + 1)) & 1;                                              \
}                                                                                                  \
static inline R##2 scaled_##R(R digits, int exponent, int up, int down, int sinks)                 \
{                                                                                                  \
    const int most = (1 << FIELD) - 1;                                                             \
    const U low = (U)(uint)clamp(exponent, -most, most) & (((U)1 << (FIELD + 1)) - 1);             \
    return (R##2)(digits, as_##R((U)((U)sinks << (3 * FIELD + 1)                                   \
                                     | (U)min(down, most) << (2 * FIELD + 1)                       \
                                     | (U)min(up, most) << (FIELD + 1) | low)));                   \
}                                                                                                  \
static inline R##2 to_scaled_##R(R x)                                                              \
{                                                                                                  \
    const int tiny = fabs(x) < ldexp((R)1, 1 - BIAS);                                              \
    const R normal = tiny ? x * ldexp((R)1, DIGITS + 1) : x;                                       \
    const U bits = as_##U(normal);                                                                 \
    const int field = (int)((bits >> DIGITS) & (U)(2 * BIAS + 1));                                 \
    const U one = (bits & ~((U)(2 * BIAS + 1) << DIGITS)) | ((U)BIAS << DIGITS);                   \
    const int most = (1 << FIELD) - 1, special = normal == (R)0 || field == 2 * BIAS + 1;          \
    const int exponent = normal == (R)0 ? -most : x != x ? 0                                       \
        : special ? most : field - BIAS - (tiny ? DIGITS + 1 : 0);                                 \
    return scaled_##R(special ? x : as_##R(one), exponent, max(exponent, 0), max(-exponent, 0),    \
                      exponent < 0);                                                               \
}                                                                                                  \
/* Of 1 / x, whose digits are those of 2 / digits unless x is a power of two. */                   \
static inline R##2 to_scaled_divisor_##R(R x, int divides)                                         \
{                                                                                                  \
    const R##2 of_x = to_scaled_##R(x);                                                            \
    if (!divides || x != x)                                                                        \
        return of_x;                                                                               \
    if (x == (R)0 || fabs(x) == (R)INFINITY)                                                       \
        return to_scaled_##R((R)1 / x);                                                            \
    const int whole = fabs(of_x.x) == (R)1;                                                        \
    const int exponent = -scaled_exponent_##R(of_x) - !whole;                                      \
    return scaled_##R((whole ? (R)1 : (R)2) / of_x.x, exponent, max(exponent, 0),                  \
                      max(-exponent, 0), exponent < 0);                                            \
}                                                                                                  \
static inline R##2 scaled_product_##R(R##2 a, R##2 b)                                              \
{                                                                                                  \
    const R digits = a.x * b.x;                                                                    \
    const int carries = fabs(digits) >= (R)2 && fabs(digits) < (R)INFINITY;                        \
    const int before = scaled_exponent_##R(a);                                                     \
    const int exponent = before + scaled_exponent_##R(b) + carries;                                \
    const int up = max(before + scaled_up_##R(b), exponent), highest = scaled_up_##R(a);           \
    const int down = max(scaled_down_##R(b) - before, -exponent), lowest = scaled_down_##R(a);     \
    const int sinks = up > highest ? down <= lowest || scaled_sinks_##R(b)                         \
                                   : down <= lowest && scaled_sinks_##R(a);                        \
    return scaled_##R(carries ? digits * (R)0.5f : digits, exponent, max(up, highest),             \
                      max(down, lowest), sinks);                                                   \
}                                                                                                  \
static inline R from_scaled_##R(R##2 a, int bias, int digits)                                      \
{                                                                                                  \
    const int vanished = scaled_down_##R(a) > bias + digits;                                       \
    if (scaled_up_##R(a) > bias && !(vanished && scaled_sinks_##R(a)))                             \
        return a.x * (R)INFINITY;                                                                  \
    return vanished ? a.x * (R)0 : ldexp(a.x, scaled_exponent_##R(a));                             \
}
