"""Last passes over finished kernel records."""
