"""The recorded program: immutable nodes, storage cells, snapshots of them, and traces."""
