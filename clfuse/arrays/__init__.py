"""The state of arrays: handles, views, memory order, promotion, and conversion to and from
NumPy."""
