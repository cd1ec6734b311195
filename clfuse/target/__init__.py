"""Facts about devices: traits, quirks, what was verified where, and which devices can be
simulated."""
