"""Kernels that users write, in OpenCL C or in Python."""
