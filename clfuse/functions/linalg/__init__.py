"""Products of vectors and matrices, einsum, decompositions."""
