"""Ufuncs, reductions, scans, statistics and selections by conditions."""
