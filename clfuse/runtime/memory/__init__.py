"""Contents of device memory: copies, host views, sharing, spilling, transfers."""
