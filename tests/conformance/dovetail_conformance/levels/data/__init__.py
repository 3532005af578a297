"""Data files of the levels."""
