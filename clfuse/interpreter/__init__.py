"""The interpreter: NumPy computes a snapshot of the graph on the host, node by node."""
