"""The process that turns LLVM IR into images. Dovetail starts it and talks through its standard input, a socket.

A request is a line of JSON, {"target": "x86_64-linux-gnu", "features": "+avx2", "functions": ["f"]}, then IR.
"""

import json
import socket
from functools import lru_cache

from llvmlite import binding as llvm

from .image import LinkError, link
from .protocol import Refusal, serve

__all__ = ["build", "main"]

# Of the code generator: 1 takes as long for the same code, 0 makes slower code. More passes than those of _tidy
# take longer and make no kernel faster; without them code that keeps its sums in variables took twice the time.
LEVEL = 2


def build(request: bytes) -> bytes:
    """The image of a request. Raises Refusal."""
    head, _, ir = request.partition(b"\n")
    try:
        asked = json.loads(head)
        target, features, functions = asked["target"], asked["features"], asked["functions"]
        if not (isinstance(target, str) and isinstance(features, str)):
            raise TypeError("target and features are texts")
        if not (isinstance(functions, list) and all(isinstance(name, str) for name in functions)):
            raise TypeError("functions is a list of names")
        text = ir.decode()
    except (ValueError, KeyError, TypeError) as error:
        raise Refusal(f"[llvm] the request is malformed: {type(error).__name__}: {error}") from None
    try:
        return link(_object(text, target, features), functions, features)
    except (RuntimeError, LinkError) as error:  # what LLVM raises for IR that is wrong
        raise Refusal(f"[llvm] {error}") from None


def _object(text: str, target: str, features: str) -> bytes:
    machine = _machine(target, features)
    module = llvm.parse_assembly(text, llvm.create_context())
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    module.verify()
    _tidy(module, machine)
    return machine.emit_object(module)


def _tidy(module: llvm.ModuleRef, machine: llvm.TargetMachine) -> None:
    """Keeps variables in registers and joins blocks: a millisecond at most."""
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=1))
    passes = llvm.create_new_module_pass_manager()
    passes.add_sroa_pass()
    passes.add_simplify_cfg_pass()
    passes.run(module, builder)


@lru_cache(maxsize=8)
def _machine(target: str, features: str) -> llvm.TargetMachine:
    parts = target.split("-")
    triple = "-".join([parts[0], "unknown", *parts[1:]] if len(parts) == 3 else parts)
    if parts[0] == llvm.get_process_triple().partition("-")[0]:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
    else:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
    # Position-independent code of the small model refers to its constants and functions by distance alone.
    return llvm.Target.from_triple(triple).create_target_machine(
        cpu="", features=features, opt=LEVEL, reloc="pic", codemodel="small"
    )


def main() -> None:
    with socket.socket(fileno=0) as connection:
        serve(connection, build)


if __name__ == "__main__":
    main()
