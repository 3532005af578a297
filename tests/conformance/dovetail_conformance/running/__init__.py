"""A run: options, worker processes, the device under test."""
