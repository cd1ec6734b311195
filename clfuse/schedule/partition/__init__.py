"""Which values go through memory, and in which order kernels run."""
