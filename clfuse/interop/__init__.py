"""What other libraries ask of an array: protocols, buffers, subclasses, patches of their
functions."""
