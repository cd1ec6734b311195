/* OpenCL C's 64-bit atomics, which NVIDIA's driver has and libclc for its chips has not. */
#define ATOMIC(S, T, name, builtin)                                                                \
T __attribute__((overloadable)) atom_##name(volatile S T *p, T value)                              \
{ return builtin(p, value, __ATOMIC_RELAXED); }
#define ATOMICS(S, T)                                                                              \
ATOMIC(S, T, add, __atomic_fetch_add)                                                              \
ATOMIC(S, T, sub, __atomic_fetch_sub)                                                              \
ATOMIC(S, T, min, __atomic_fetch_min)                                                              \
ATOMIC(S, T, max, __atomic_fetch_max)                                                              \
ATOMIC(S, T, and, __atomic_fetch_and)                                                              \
ATOMIC(S, T, or, __atomic_fetch_or)                                                                \
ATOMIC(S, T, xor, __atomic_fetch_xor)                                                              \
ATOMIC(S, T, xchg, __atomic_exchange_n)                                                            \
T __attribute__((overloadable)) atom_inc(volatile S T *p) { return atom_add(p, (T)1); }            \
T __attribute__((overloadable)) atom_dec(volatile S T *p) { return atom_sub(p, (T)1); }            \
T __attribute__((overloadable)) atom_cmpxchg(volatile S T *p, T expected, T value)                 \
{ return __sync_val_compare_and_swap(p, expected, value); }
ATOMICS(__global, long)
ATOMICS(__global, ulong)
ATOMICS(__local, long)
ATOMICS(__local, ulong)
