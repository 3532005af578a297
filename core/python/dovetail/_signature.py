"""The text of inspect.signature(dovetail.add) and help(): the declaration's parameters, without annotations, and
its docstring."""

from __future__ import annotations

from inspect import Parameter, Signature, cleandoc

from dovetail import schema


def signature(name: str) -> Signature:
    """The signature of the op of this name. Raises AttributeError for one that was not declared in Python."""
    op = schema.registry.get(name)
    if op is None:
        raise AttributeError(f"[{name}] has no declaration in dovetail.schema to take a signature from")
    parameters = [_parameter(p) for p in op.params]
    if not op.operands:
        parameters.append(Parameter("device", Parameter.KEYWORD_ONLY, default=None))
    return Signature(parameters)


def doc(name: str, summary: str) -> str:
    """The text of the op's declaration; of an op that was not declared in Python, the summary."""
    op = schema.registry.get(name)
    return cleandoc(op.__doc__) if op and op.__doc__ else summary


def _parameter(p: schema.Param) -> Parameter:
    kind = Parameter.POSITIONAL_OR_KEYWORD
    if p.keyword_only:
        kind = Parameter.KEYWORD_ONLY
    elif p.positional_only:
        kind = Parameter.POSITIONAL_ONLY
    default = Parameter.empty if p.default is schema.declare.REQUIRED else p.default
    return Parameter(p.name, kind, default=default)
