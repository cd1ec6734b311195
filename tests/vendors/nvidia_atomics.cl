/* OpenCL C's 64-bit atomics, which NVIDIA's driver has and libclc for its chips has not. */
#define OVERLOADED __attribute__((overloadable))
#define ATOMIC(S, T, name, builtin)                                                                \
T OVERLOADED atom_##name(volatile S T *p, T value) { return builtin(p, value); }
#define EXTREME(S, T, name, compare)                                                               \
T OVERLOADED atom_##name(volatile S T *p, T value)                                                 \
{                                                                                                  \
    T found = *p;                                                                                  \
    while (value compare found) {                                                                  \
        const T before = __sync_val_compare_and_swap(p, found, value);                             \
        if (before == found) break;                                                                \
        found = before;                                                                            \
    }                                                                                              \
    return found;                                                                                  \
}
#define ATOMICS(S, T)                                                                              \
ATOMIC(S, T, add, __sync_fetch_and_add)                                                            \
ATOMIC(S, T, sub, __sync_fetch_and_sub)                                                            \
ATOMIC(S, T, and, __sync_fetch_and_and)                                                            \
ATOMIC(S, T, or, __sync_fetch_and_or)                                                              \
ATOMIC(S, T, xor, __sync_fetch_and_xor)                                                            \
ATOMIC(S, T, xchg, __sync_swap)                                                                    \
EXTREME(S, T, min, <)                                                                              \
EXTREME(S, T, max, >)                                                                              \
T OVERLOADED atom_inc(volatile S T *p) { return atom_add(p, (T)1); }                               \
T OVERLOADED atom_dec(volatile S T *p) { return atom_sub(p, (T)1); }                               \
T OVERLOADED atom_cmpxchg(volatile S T *p, T expected, T value)                                    \
{ return __sync_val_compare_and_swap(p, expected, value); }
ATOMICS(__global, long)
ATOMICS(__global, ulong)
ATOMICS(__local, long)
ATOMICS(__local, ulong)
