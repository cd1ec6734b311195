"""What other libraries use of an array: protocols, buffers, subclasses, patched functions."""
