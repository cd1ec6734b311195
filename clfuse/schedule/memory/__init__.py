"""Which bytes each value lies in, and what may be overwritten."""
