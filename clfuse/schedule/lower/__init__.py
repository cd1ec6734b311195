"""Nodes become kernel records."""
