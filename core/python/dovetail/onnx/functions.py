"""Calls of functions: the model's own, and those with which ONNX defines ops."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import onnx
from onnx import FunctionProto, NodeProto, helper

from dovetail.onnx.registry import op_name, same_domain, shown
from dovetail.onnx.values import STRING, Unsupported, number_of_dtype

__all__ = ["call", "expand", "has_function"]


def call(
    importer: Any, function: FunctionProto, proto: NodeProto, values: list[Any], scope: Any
) -> tuple[Any, ...]:
    """The outputs of a function: its nodes are run in a scope of their own."""
    from dovetail.onnx.importer import Scope

    given = {a.name: scope.attributes.get(a.ref_attr_name) if a.ref_attr_name else a for a in proto.attribute}
    attributes = {a.name: a for a in function.attribute_proto} | {k: a for k, a in given.items() if a is not None}
    opsets = {same_domain(o.domain): o.version for o in function.opset_import} or scope.opsets
    inner = Scope(None, opsets, attributes)
    for i, name in enumerate(function.input):
        inner.values[name] = values[i] if i < len(values) else None
    importer.budget.enter()
    try:
        importer.run(function.node, inner)
    finally:
        importer.budget.leave()
    wanted = [*map(bool, proto.output), *[False] * len(function.output)]
    return tuple(inner.get(name) if used else None for name, used in zip(function.output, wanted))


def expand(
    importer: Any, proto: NodeProto, domain: str, opset: int, values: list[Any], scope: Any
) -> tuple[Any, ...]:
    """The outputs of an op by ONNX's own definition. Raises Unsupported where there is none."""
    op = op_name(domain, proto.op_type)
    try:
        schema = onnx.defs.get_schema(proto.op_type, opset, domain)
    except onnx.defs.SchemaError:
        raise Unsupported(missing(op, opset)) from None
    proto = _resolved(proto, scope)
    function = _definition(schema, proto, opset, values)
    if function is None:
        raise Unsupported(missing(op, opset))
    for attribute in schema.attributes.values():
        if attribute.default_value.name and all(a.name != attribute.name for a in proto.attribute):
            proto.attribute.append(attribute.default_value)
    return call(
        importer, function, proto, values, type(scope)(None, {**scope.opsets, domain: opset}, scope.attributes)
    )


def missing(op: str, opset: int) -> str:
    return (
        f"op {op}-{opset} has no handler; register one with dovetail.onnx.register, or export the model without it"
    )


def _resolved(proto: NodeProto, scope: Any) -> NodeProto:
    """The node with the attributes of the function around it in place of references: definitions that depend on
    their context read them."""
    made = NodeProto.FromString(proto.SerializeToString())
    del made.attribute[:]
    for a in proto.attribute:
        found = scope.attributes.get(a.ref_attr_name) if a.ref_attr_name else a
        if found is None:
            continue
        own = made.attribute.add()
        own.CopyFrom(found)
        own.name = a.name
    return made


def has_function(op: str, opset: int, domain: str) -> bool:
    try:
        schema = onnx.defs.get_schema(op, opset, domain)
    except onnx.defs.SchemaError:
        return False
    return schema.has_function or schema.has_context_dependent_function


def _definition(schema: Any, proto: NodeProto, opset: int, values: list[Any]) -> FunctionProto | None:
    if schema.has_function:
        return _plain_definition(schema.name, schema.domain, schema.since_version, _latest(schema, opset, False))
    if not schema.has_context_dependent_function:
        return None
    types = [type_of(v).SerializeToString() for v in values]
    version = _latest(schema, opset, True)
    try:
        made = schema.get_context_dependent_function_with_opset_version(version, proto.SerializeToString(), types)
    except RuntimeError as error:  # its text has names of the node, and several lines
        raise ValueError(f"ONNX's definition cannot be made for it: {shown(str(error))}") from None
    return FunctionProto.FromString(made) if made else None


def _latest(schema: Any, opset: int, context: bool) -> int:
    """The newest opset of which the schema has a definition, up to the model's."""
    known = schema.context_dependent_function_opset_versions if context else schema.function_opset_versions
    return max((v for v in known if v <= max(opset, schema.since_version)), default=schema.since_version)


@lru_cache(maxsize=256)
def _plain_definition(op: str, domain: str, since: int, version: int) -> FunctionProto:
    schema = onnx.defs.get_schema(op, since, domain)
    return FunctionProto.FromString(schema.get_function_with_opset_version(version))


def type_of(value: Any) -> onnx.TypeProto:
    """A value's type, with the sizes that are known."""
    if value is None:
        return onnx.TypeProto()
    if isinstance(value, list):
        inner = type_of(value[0]) if value else helper.make_tensor_type_proto(1, None)
        return helper.make_sequence_type_proto(inner)
    if isinstance(value, np.ndarray):
        return helper.make_tensor_type_proto(STRING, value.shape)
    name = value.dtype if isinstance(value.dtype, str) else value.dtype.name
    shape = [n if isinstance(n, int) and type(n) is int else None for n in value.shape]
    return helper.make_tensor_type_proto(number_of_dtype(name), shape)
