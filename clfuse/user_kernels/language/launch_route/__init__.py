"""Kernels as OpenCL C of their own."""
