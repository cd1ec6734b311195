"""The process: its locks in threads and forks, and calls that its end leaves behind."""
