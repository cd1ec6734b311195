"""A CPU device that appears as another one, with memory between guard pages."""
