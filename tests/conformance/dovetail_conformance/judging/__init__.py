"""The expected answers: the oracle, and how far an answer may be from it. No device here."""
