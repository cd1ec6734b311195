"""Tables of the element-wise operations: OpenCL C, NumPy's loops, and the rules of each ufunc."""
