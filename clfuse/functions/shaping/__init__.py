"""New arrays, and arrays whose shape or order changes."""
