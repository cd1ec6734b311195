"""Kernel records -> OpenCL C; the only importer of Mako. Called by `evaluate` and `explain`."""
