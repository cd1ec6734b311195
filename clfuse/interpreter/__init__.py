"""Snapshots of the graph computed by NumPy on the host, node by node."""
