"""Scheduling: a graph and a device's traits become records of fused kernels; no OpenCL, no text."""
