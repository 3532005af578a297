"""Files that are part of what is tested."""
