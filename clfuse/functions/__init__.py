"""Implementations of NumPy's functions, by NumPy's topics."""
