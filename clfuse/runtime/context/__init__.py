"""A device's state: its memory pool, and what is raised when it is lost."""
