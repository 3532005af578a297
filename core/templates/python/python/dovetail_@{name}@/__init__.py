"""The device @{name}@ for Dovetail: device.py."""
