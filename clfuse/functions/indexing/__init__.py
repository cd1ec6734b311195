"""Arrays read and written by indices: integers, slices, masks, arrays of positions."""
