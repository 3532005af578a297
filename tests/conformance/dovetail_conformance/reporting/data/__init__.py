"""Files that go with a report."""
