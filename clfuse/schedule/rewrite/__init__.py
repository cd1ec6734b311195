"""Passes that rewrite the planner's graph before anything is placed."""
