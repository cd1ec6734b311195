"""Sorts, searches and quantiles."""
