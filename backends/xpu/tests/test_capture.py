"""Capture beyond the suite's cases, as for every device that captures."""

from capture_tests import *  # noqa: F403
