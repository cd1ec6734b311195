"""Kernels over unequal ranges, rows or steps become one."""
