"""Calls of kernels: the decorator, arguments, caches, batches, plain Python."""
