"""The process: its locks and imports in threads and forks, and calls that its end leaves behind."""
