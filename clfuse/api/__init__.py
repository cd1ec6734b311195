"""NumPy's interface over the recorded graph: everything that `clfuse` exports is made here.

`handle` holds an array's state; functions by subject take and give handles (`creation`,
`sequences`, `manipulation`, `joining`, `selection`, `reductions`, `statistics`, `logic`,
`differences`, `linalg`, `random`); `ufunc` and `operators` record loops that `promotion` resolves;
`fallback` asks NumPy on the host for the rest; `ndarray` gives programs the array and the lazy
scalar, `namespace` the names.

Where programs can tell the difference from NumPy:

- A `scalar` (what a reduction or an element returns) is an instance of `numpy.float64` and the like
  for ``isinstance``, but ``type(x)`` and C code that looks at the type see ours: ``json.dumps``
  refuses it. Assigned to an integer array of another dtype it is computed at once, because NumPy
  refuses values that do not fit.
- Arrays of dtypes that do not live on devices are `numpy.ndarray`s.
- `numpy.asarray(x)` is read-only: a snapshot on the device's own memory where that is shared.
- Floating-point warnings (division by zero, overflow) are not issued, and "All-NaN slice" is not:
  values are not known when the call is made.
- ``a ** b`` of signed integers looks at `b`: NumPy raises for negative exponents at the call.
- ufuncs called with ``where=`` and without ``out=`` give zeros where NumPy gives what was there.
- ``default_rng(seed)`` and ``random.seed(seed)`` give the same numbers on every run and device, but
  not NumPy's; ``CLFUSE_EXACT_RANDOM=on`` gives those.
- Subclasses of `ndarray` are not made by ``view(type)``.
"""
