"""What a program means, said a second time: a small interpreter in NumPy that shares no code with the runtime.

It reads the canonical form of programs (JSON) and .dvt files, and is the specification of both. `interpret` runs a
program, `check_program` compares the runtime with it, and `python -m dovetail_conformance.interpret m.dvt` prints
the results for seeded inputs.

A node means what its op's `reference` (core/schema/ops) returns for the exact values of its operands, computed in
float64, or in longdouble for operands of float64. By default that is rounded once, to the dtype that the op's dtype
rule gives the result, before another node sees it: programs may work on the bits of a float, and rely on the
rounding of a sum. With `rounding="last"` floats stay float64 between the nodes, which is the better answer to judge
a model by: only astype, bitcast and the program's outputs round. Integers are exact in their dtype, and wrap.
"""

from .check import Comparison, check_program, seeded_inputs
from .document import BadProgram, load_document
from .interpreter import GuardFailed, interpret

__all__ = [
    "BadProgram",
    "Comparison",
    "GuardFailed",
    "check_program",
    "interpret",
    "load_document",
    "seeded_inputs",
]
