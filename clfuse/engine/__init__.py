"""The engine: a snapshot of the graph becomes an executable, and arrays get their values."""
