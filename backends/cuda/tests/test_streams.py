"""Queues past the runtime, as of every device whose work goes on by itself."""

from stream_tests import *  # noqa: F403
