"""The conformance suite: says what a device really does, op by op and dtype by dtype."""
