"""Linear algebra: products of vectors and matrices, einsum, decompositions."""
