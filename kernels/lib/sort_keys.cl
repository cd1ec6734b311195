/* What sorts compare: unsigned integers in the order of the elements, all NaN equal and last.
 *
 * key_t and bits_t are the types of keys and of elements as integers; SIGN is the highest bit of an
 * element, INFINITE and QUIET are its bits of infinity and of NaN. KEY_OF_NUMBER has -0.0 and 0.0 equal:
 * where what travels with a key has to stay in order.
 */
#define KEY_OF_UNSIGNED(b) ((key_t)(b))
#define KEY_OF_SIGNED(b) ((key_t)(bits_t)((b) ^ SIGN))
#define KEY_OF_FLOAT(b) \
    ((bits_t)((b) & (bits_t)~SIGN) > (bits_t)INFINITE ? (key_t)(bits_t)~(bits_t)0 \
     : ((b) & SIGN) ? (key_t)(bits_t)~(b) : (key_t)(bits_t)((b) | SIGN))
#define KEY_OF_NUMBER(b) ((b) == SIGN ? (key_t)SIGN : KEY_OF_FLOAT(b))
#define UNSIGNED_OF_KEY(key) ((bits_t)(key))
#define SIGNED_OF_KEY(key) ((bits_t)((key) ^ SIGN))
#define FLOAT_OF_KEY(key) \
    ((bits_t)(key) == (bits_t)~(bits_t)0 ? (bits_t)QUIET \
     : ((key) & SIGN) ? (bits_t)((key) ^ SIGN) : (bits_t)~(key))
