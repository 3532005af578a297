"""The output of a run: on the terminal during the run, and in files."""
