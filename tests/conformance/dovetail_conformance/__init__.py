"""The conformance suite: measures what a device really does, op by op and dtype by dtype."""
