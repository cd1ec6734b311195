"""Which devices there are, and which is current."""
