"""What a run tells: on the terminal while it goes on, and in files."""
