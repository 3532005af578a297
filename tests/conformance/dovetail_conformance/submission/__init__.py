"""The submission package: one file that shows a device's level to somebody else, and what checks it.

`archive` is its outer form, `wheels` and `statement` are what it says beside results.json, `package` makes it,
`verify` takes nothing in it on trust that can be worked out again.
"""


class Refused(Exception):
    """The package does not hold; one line says why."""
