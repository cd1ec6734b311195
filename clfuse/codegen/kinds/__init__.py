"""The contents of each template, one kind of kernel a module."""
