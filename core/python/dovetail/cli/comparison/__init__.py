"""`dovetail bench --against`: the same work on a device and in other libraries, in the same run.

Each contender runs in a process of its own, with a number of threads that is set before its library starts. The
contenders take turns, so that a slow minute of the machine costs all of them the same. Times during which other
processes needed the processors are discarded.
"""
