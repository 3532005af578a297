"""LLVM for Dovetail, in a process of its own: see the worker."""
