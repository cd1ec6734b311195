"""`clfuse.jit`: functions traced once for each signature, and replayed."""
