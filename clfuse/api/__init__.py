"""NumPy's interface over the recorded graph: everything that `clfuse` exports is made here."""
