"""Fourier transforms, convolution and bits."""
