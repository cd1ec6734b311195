"""NumPy's functions lead here to ours, or to NumPy on the host."""
