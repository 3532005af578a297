"""Random programs: Python functions over arrays, which a compiled function must run as an eager call does."""
