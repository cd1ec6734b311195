"""`clfuse.random`: generators, their bits, and distributions."""
