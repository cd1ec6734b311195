"""Who computes: NumPy on the host or kernels, and when kernels are built. `choice` is the door."""
