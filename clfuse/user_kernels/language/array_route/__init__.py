"""The array route: kernels over a range of indices as array operations on views."""
