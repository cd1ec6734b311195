"""OpenCL drivers and their compilers: found, listed, probed, and what they need around them."""
