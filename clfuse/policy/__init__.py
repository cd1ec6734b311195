"""The policy: whether NumPy or kernels compute a snapshot, and when kernels are built."""
