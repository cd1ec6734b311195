"""The state of arrays: handles, views, memory order, promotion, conversion to and from NumPy."""
