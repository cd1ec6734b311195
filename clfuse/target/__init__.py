"""Facts about devices: traits, quirks, costs, what was verified where, what can be simulated."""
