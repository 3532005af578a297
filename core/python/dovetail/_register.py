"""Ops that are registered at run time, in the same way as the schema's own."""

from __future__ import annotations

from dovetail import _core
from dovetail.schema.declare import REQUIRED, Op


def register_op(op: Op) -> _core.Op:
    """Makes an op declared with dovetail.schema.op callable; returns its function.

    Its name wants a prefix of your own, as "acme.swirl": kernels bind to the same name. Raises ValueError where the
    name is taken or a rule is unknown.
    """
    spec = op.spec
    params = [
        {
            "name": p.name,
            "kind": p.kind,
            "optional": p.optional,
            "variadic": p.variadic,
            "keyword_only": p.keyword_only,
            "since": p.since,
            "default": ... if p.default is REQUIRED else p.default,
        }
        for p in op.params
    ]
    return _core.register_op(
        {
            "name": spec.name,
            "version": spec.version,
            "space": spec.space,
            "shape": spec.shape,
            "dtype": spec.dtype,
            "params": params,
            "n_out": spec.n_out,
            "flags": spec.flags,
            "tol": spec.tol,
            "doc": spec.doc,
        }
    )
