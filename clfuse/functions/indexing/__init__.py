"""Indexing: arrays read and written by integers, slices, masks and index arrays."""
