"""Groups of nodes as programs, which the library compiles and runs, and its kernels node by node."""

from __future__ import annotations

import ctypes as ct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from abi import OK, UNSUPPORTED, Answer, Attr, Call, DLTensor
from harness import Guarded, KernelError, Scalar, Session, _attr, _pointers, _tensor, dl_dtype

ROUND_EACH, DETERMINISTIC, TYPED = 1, 2, 4
CONSTANT, HOST_SCALAR, NUMBER = 1, 4, 16
ABSENT = 2**32 - 1
U32 = ct.POINTER(ct.c_uint32)
REDUCTIONS = ("sum", "mean", "prod", "max", "min", "any", "all")


class Symbol(ct.Structure):
    _fields_ = [(n, ct.c_int64) for n in ("min", "max", "multiple", "hint")] + [
        ("input", ct.c_int32),
        ("axis", ct.c_int32),
        ("name", ct.c_char_p),
        ("reserved", ct.c_uint64 * 2),
    ]


class Info(ct.Structure):
    _fields_ = [
        ("flags", ct.c_uint32),
        ("reserved0", ct.c_uint32),
        ("identity", ct.c_uint64),
        ("number", ct.c_int32),
        ("reserved32", ct.c_uint32),
        ("name", ct.c_char_p),
        ("reserved", ct.c_uint64 * 2),
    ]


class Node(ct.Structure):
    _fields_ = [
        ("struct_size", ct.c_uint32),
        ("op_version", ct.c_uint32),
        ("op", ct.c_char_p),
        ("ins", U32),
        ("outs", U32),
        ("attr", ct.POINTER(Attr)),
        ("n_in", ct.c_uint32),
        ("n_out", ct.c_uint32),
        ("n_attr", ct.c_uint32),
        ("flags", ct.c_uint32),
        ("where", ct.c_char_p),
    ]


COUNTS = ("flags", "n_values", "n_nodes", "n_inputs", "n_outputs", "n_symbols", "n_numbers", "n_guards", "reserved")


class ProgramView(ct.Structure):
    _fields_ = [
        ("struct_size", ct.c_uint32),
        *((n, ct.c_uint32) for n in COUNTS),
        ("values", ct.POINTER(DLTensor)),
        ("info", ct.POINTER(Info)),
        ("nodes", ct.POINTER(ct.POINTER(Node))),
        ("inputs", U32),
        ("outputs", U32),
        ("symbols", ct.POINTER(Symbol)),
        ("numbers", ct.c_void_p),
        ("guards", ct.c_void_p),
        ("hash", ct.c_uint64 * 2),
    ]


class Claim(ct.Structure):
    _fields_ = [
        ("group", ct.c_uint32),
        ("gain_ns", ct.c_float),
        ("reason", ct.c_char_p),
        ("reserved", ct.c_uint64 * 2),
    ]


class ExeCall(ct.Structure):
    _fields_ = [
        ("struct_size", ct.c_uint32),
        ("n_symbols", ct.c_uint32),
        ("n_numbers", ct.c_uint32),
        ("reserved", ct.c_uint32),
        ("symbols", ct.POINTER(ct.c_int64)),
        ("numbers", ct.c_void_p),
        ("call", ct.POINTER(Call)),
    ]


P, I32 = ct.c_void_p, ct.c_int32


class Compiler(ct.Structure):
    _fields_ = [
        ("struct_size", ct.c_uint32),
        ("flags", ct.c_uint32),
        ("claim", ct.CFUNCTYPE(I32, P, ct.POINTER(ProgramView), ct.POINTER(Claim))),
        ("compile", ct.CFUNCTYPE(I32, P, ct.POINTER(ProgramView), ct.c_char_p, ct.POINTER(P))),
        ("query", ct.CFUNCTYPE(I32, P, ct.POINTER(ExeCall), ct.POINTER(Answer))),
        ("run", ct.CFUNCTYPE(I32, P, ct.POINTER(ExeCall))),
        ("destroy", ct.CFUNCTYPE(None, P)),
    ]


def compiler_of(cpu: Session) -> Compiler:
    extension = ct.CFUNCTYPE(P, ct.c_char_p, ct.c_uint32)(cpu.table.extension)
    assert not extension(b"dovetail.compiler", 1) and not extension(b"dovetail.capture", 2)
    return ct.cast(extension(b"dovetail.compiler", 2), ct.POINTER(Compiler)).contents


@dataclass(frozen=True)
class Value:
    """Value `index` of a Group."""

    index: int
    shape: tuple[int, ...]
    dtype: np.dtype


class Group:
    """A program under construction. Its inputs are given with it; sizes other than 1 become symbols."""

    def __init__(self) -> None:
        self.values: list[Value] = []
        self.given: dict[int, np.ndarray] = {}
        self.flags: dict[int, int] = {}
        self.nodes: list[tuple[str, list[Value | None], Value, tuple]] = []
        self.inputs: list[int] = []
        self.outputs: list[int] = []

    def _value(self, shape: Sequence[int], dtype: np.dtype) -> Value:
        self.values.append(Value(len(self.values), tuple(shape), np.dtype(dtype)))
        return self.values[-1]

    def input(self, x: np.ndarray, host_scalar: bool = False) -> Value:
        v = self._value(x.shape, x.dtype)
        self.given[v.index] = x
        self.inputs.append(v.index)
        self.flags[v.index] = HOST_SCALAR if host_scalar else 0
        return v

    def constant(self, x: np.ndarray | np.generic) -> Value:
        x = np.asarray(x)
        v = self._value(x.shape, x.dtype)
        self.given[v.index] = x
        self.flags[v.index] = CONSTANT
        return v

    def map(
        self, op: str, *ins: Value | None, dtype: np.dtype | None = None, attrs: Sequence[object] = ()
    ) -> Value:
        shape = np.broadcast_shapes(*(v.shape for v in ins if v))
        v = self._value(shape, dtype or next(v.dtype for v in reversed(ins) if v))
        self.nodes.append((op, list(ins), v, tuple(attrs)))
        return v

    def reduce(self, op: str, x: Value, keepdims: bool = True, leading: bool = False) -> Value:
        """Along the last axis, or along all others."""
        axes = tuple(range(len(x.shape)))
        axes = axes[:-1] if leading else axes[-1:]
        shape = tuple(1 if i in axes else n for i, n in enumerate(x.shape) if keepdims or i not in axes)
        v = self._value(shape, np.dtype(bool) if op in ("any", "all") else x.dtype)
        dtype = (None,) if op in ("sum", "prod") else ()
        self.nodes.append((op, [x], v, (axes, *dtype, keepdims)))
        return v

    def output(self, *values: Value) -> None:
        self.outputs.extend(v.index for v in values)

    # ---- node by node

    def eager(self, cpu: Session) -> list[np.ndarray]:
        known = dict(self.given)
        for op, ins, out, attrs in self.nodes:
            arrays = [None if v is None else known[v.index] for v in ins]
            if op not in REDUCTIONS:
                arrays = [
                    a if a is None else Scalar(a) if a.ndim == 0 else np.broadcast_to(a, out.shape) for a in arrays
                ]
            known[out.index] = cpu.run(op, *arrays, out=out.dtype, shape=out.shape, attrs=attrs)
        return [known[v] for v in self.outputs]

    # ---- compiled

    def view(self, keep: list[object], flags: int = TYPED, symbolic: bool = True) -> ProgramView:
        sizes = sorted({n for v in self.values for n in v.shape if n != 1}) if symbolic else []
        self.symbols = sizes
        values = (DLTensor * len(self.values))()
        info = (Info * len(self.values))()
        for v in self.values:
            shape = (ct.c_int64 * max(1, len(v.shape)))(
                *(-1 - sizes.index(n) if n in sizes else n for n in v.shape)
            )
            data = self.given[v.index] if self.flags.get(v.index, 0) & CONSTANT else None
            keep.extend([shape, data])
            values[v.index] = DLTensor(
                None if data is None else data.ctypes.data, 1, 0, len(v.shape), dl_dtype(v.dtype), shape
            )
            info[v.index] = Info(flags=self.flags.get(v.index, 0), number=-1)
        nodes = []
        for op, ins, out, attrs in self.nodes:
            its_in = (ct.c_uint32 * len(ins))(*(ABSENT if v is None else v.index for v in ins))
            its_attrs = (Attr * max(1, len(attrs)))(*(_attr(a, keep) for a in attrs))
            node = Node(ct.sizeof(Node), 1, f"dvt.{op}".encode(), its_in, (ct.c_uint32 * 1)(out.index), its_attrs)
            node.n_in, node.n_out, node.n_attr = len(ins), 1, len(attrs)
            nodes.append(node)
        symbols = (Symbol * max(1, len(sizes)))(*(Symbol(0, 2**63 - 1, 1, n, -1, -1) for n in sizes))
        made = ProgramView(struct_size=ct.sizeof(ProgramView), flags=flags)
        made.n_values, made.n_nodes = len(self.values), len(nodes)
        made.n_inputs, made.n_outputs, made.n_symbols = len(self.inputs), len(self.outputs), len(sizes)
        made.values, made.info, made.symbols = values, info, symbols
        made.nodes = (ct.POINTER(Node) * len(nodes))(*map(ct.pointer, nodes))
        made.inputs = (ct.c_uint32 * max(1, len(self.inputs)))(*self.inputs)
        made.outputs = (ct.c_uint32 * max(1, len(self.outputs)))(*self.outputs)
        keep.extend([values, info, symbols, nodes, made])
        return made

    def claims(self, cpu: Session) -> list[Claim]:
        keep: list[object] = []
        out = (Claim * len(self.nodes))()
        cpu.check(compiler_of(cpu).claim(None, ct.byref(self.view(keep)), out))
        return list(out)

    def compile(self, cpu: Session, flags: int = TYPED, symbolic: bool = True) -> Executable:
        return Executable(self, cpu, flags, symbolic)

    def run(self, cpu: Session, flags: int = TYPED, symbolic: bool = True, **how) -> list[np.ndarray]:
        with self.compile(cpu, flags, symbolic) as exe:
            return exe.run(**how)


class Executable:
    def __init__(self, group: Group, cpu: Session, flags: int, symbolic: bool):
        keep: list[object] = []
        self.group, self.cpu, self.compiler = group, cpu, compiler_of(cpu)
        self.handle = P()
        view = group.view(keep, flags, symbolic)
        cpu.check(self.compiler.compile(None, ct.byref(view), b"{}", ct.byref(self.handle)))
        ct.memset(ct.byref(view), 0xDB, ct.sizeof(view))  # nothing of the program is read after compile

    def __enter__(self) -> Executable:
        return self

    def __exit__(self, *_: object) -> None:
        self.compiler.destroy(self.handle)

    def run(self, inputs: Sequence[np.ndarray] | None = None, strided: bool = False) -> list[np.ndarray]:
        """The outputs. inputs: other ones of these sizes. strided: outputs with gaps and reversed axes.

        KernelError with UNSUPPORTED where `query` refuses.
        """
        g, keep = self.group, []
        given = inputs or [g.given[i] for i in g.inputs]
        wanted = [g.values[v] for v in g.outputs]
        guarded = [Guarded(_spread(v.shape) if strided else v.shape, v.dtype) for v in wanted]
        arrays = [_gaps(o.array, v.shape) if strided else o.array for o, v in zip(guarded, wanted, strict=True)]
        call = Call(struct_size=ct.sizeof(Call), n_in=len(given), n_out=len(arrays))
        call.ins = _pointers([_tensor(x, keep) for x in given], keep)
        call.outs = _pointers([_tensor(x, keep) for x in arrays], keep)
        symbols = (ct.c_int64 * max(1, len(g.symbols)))(*g.symbols)
        exe_call = ExeCall(ct.sizeof(ExeCall), len(g.symbols), 0, 0, symbols, None, ct.pointer(call))
        answer = Answer(struct_size=ct.sizeof(Answer))
        status = self.compiler.query(self.handle, ct.byref(exe_call), ct.byref(answer))
        if status == UNSUPPORTED:
            raise KernelError(status, (answer.reason or b"").decode())
        assert status == OK and not answer.need_compact
        workspace = Guarded([answer.workspace + 64], np.dtype(np.uint8))
        call.workspace = (workspace.array.ctypes.data + 63) // 64 * 64
        call.workspace_size = answer.workspace
        self.cpu.check(self.compiler.run(self.handle, ct.byref(exe_call)))
        for o in guarded:
            o.check()
        if strided:
            for o, v in zip(guarded, wanted, strict=True):
                untouched = np.ones(o.array.shape, bool)
                _gaps(untouched, v.shape)[...] = False
                content = np.frombuffer(o.array.tobytes(), np.uint8).reshape(o.array.size, v.dtype.itemsize)
                assert (content[untouched.ravel()] == 0xA5).all()
        return [np.array(a) for a in arrays]


def _spread(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(2 * n + 1 for n in reversed(shape))


def _gaps(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """An array of this shape in x, which _spread() has made: its axes reversed, every second element."""
    return x[(..., *(slice(0, 2 * n, 2) for n in reversed(shape)))].transpose(range(len(shape))[::-1])
