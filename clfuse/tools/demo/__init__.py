"""The demonstration: plain NumPy programs run by NumPy and, unchanged, by clfuse.

The programs in ``programs/`` know nothing of clfuse. `runner` times and compares, `report` shows.
"""
