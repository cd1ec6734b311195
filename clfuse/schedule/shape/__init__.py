"""Vectors, pieces, tiles and work-items of a kernel."""
