"""Programs built, kernels and library calls put into a device's queue."""
