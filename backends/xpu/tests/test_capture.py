"""Capture beyond what the suite sees, as of every device that captures."""

from capture_tests import *  # noqa: F403
