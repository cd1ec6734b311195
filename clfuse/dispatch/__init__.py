"""Dispatch of NumPy's functions to ours, or to NumPy on the host."""
