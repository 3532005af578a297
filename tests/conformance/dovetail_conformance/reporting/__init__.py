"""The output of a run: on the terminal while it goes on, and in files."""
