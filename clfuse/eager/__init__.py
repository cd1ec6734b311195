"""Eager operations: NumPy computes them at the call, on small arrays that lie on the host."""
