"""The report of a run: where its time went, line by line, as one HTML page."""
