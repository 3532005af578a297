"""Queues, without the runtime, as for every asynchronous device."""

from stream_tests import *  # noqa: F403
