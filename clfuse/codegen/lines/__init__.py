"""Lines of OpenCL C: loads, steps, folds and stores inside of a kernel's loops."""
