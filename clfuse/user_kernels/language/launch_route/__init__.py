"""The launch route: kernels as OpenCL C of their own."""
