"""Fourier transforms, convolution, and bits packed into bytes."""
