"""Tuning of kernels on what a program runs: other geometries are tried, and the best is kept."""
