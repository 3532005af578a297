"""Recurrent networks: LSTM, GRU and RNN, in all forms that ONNX has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import dovetail as dt
from dovetail import nn
from dovetail.onnx.registry import MICROSOFT, Node, onnx_op
from dovetail.onnx.values import is_constant

Activation = Callable[[Any], Any]

# Each activation by alpha and beta, and their defaults.
_ACTIVATIONS: dict[str, tuple[Callable[[Any, float, float], Any], float, float]] = {
    "Affine": (lambda x, a, b: x * a + b, 1.0, 0.0),
    "Elu": (lambda x, a, b: nn.elu(x, a), 1.0, 0.0),
    "HardSigmoid": (lambda x, a, b: dt.clip(x * a + b, 0.0, 1.0), 0.2, 0.5),
    "LeakyRelu": (lambda x, a, b: nn.leaky_relu(x, a), 0.01, 0.0),
    "Relu": (lambda x, a, b: nn.relu(x), 0.0, 0.0),
    "ScaledTanh": (lambda x, a, b: dt.tanh(x * b) * a, 1.0, 1.0),
    "Sigmoid": (lambda x, a, b: nn.sigmoid(x), 0.0, 0.0),
    "Softplus": (lambda x, a, b: nn.softplus(x), 0.0, 0.0),
    "Softsign": (lambda x, a, b: nn.softsign(x), 0.0, 0.0),
    "Tanh": (lambda x, a, b: dt.tanh(x), 0.0, 0.0),
    "ThresholdedRelu": (lambda x, a, b: dt.where(x > a, x, 0.0), 1.0, 0.0),
}
_DEFAULT = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}
_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


class _Cell(NamedTuple):
    """One direction of a network: what a step needs."""

    kind: str
    hidden: int
    recurrence: Any  # (gates * hidden, hidden)
    bias: Any  # of the recurrence, or None
    peepholes: Any
    activations: list[Activation]
    clipped: Activation
    input_forget: bool
    before_reset: bool

    def part(self, v: Any, i: int) -> Any:
        return v[..., i * self.hidden : (i + 1) * self.hidden]

    def product(self, h: Any, i: int | None = None) -> Any:
        """The recurrence's part of a gate, or of all gates."""
        w = self.recurrence if i is None else self.recurrence[i * self.hidden : (i + 1) * self.hidden]
        b = self.bias if i is None or self.bias is None else self.part(self.bias, i)
        return nn.linear(h, w, b)

    def step(self, state: tuple[Any, ...], given: Any) -> tuple[Any, ...]:
        return {"RNN": self._rnn, "GRU": self._gru, "LSTM": self._lstm}[self.kind](state, given)

    def _rnn(self, state: tuple[Any, ...], given: Any) -> tuple[Any, ...]:
        return (self.activations[0](self.clipped(given + self.product(state[0]))),)

    def _gru(self, state: tuple[Any, ...], given: Any) -> tuple[Any, ...]:
        (h,), (f, g) = state, self.activations
        update = f(self.clipped(self.part(given, 0) + self.product(h, 0)))
        reset = f(self.clipped(self.part(given, 1) + self.product(h, 1)))
        inner = reset * self.product(h, 2) if self.before_reset else self.product(reset * h, 2)
        new = g(self.clipped(self.part(given, 2) + inner))
        return ((1.0 - update) * new + update * h,)

    def _lstm(self, state: tuple[Any, ...], given: Any) -> tuple[Any, ...]:
        (h, c), (f, g, last) = state, self.activations
        gates = given + self.product(h)
        enter, leave, forget, new = (self.part(gates, i) for i in range(4))
        if self.peepholes is not None:
            enter, forget = enter + self.part(self.peepholes, 0) * c, forget + self.part(self.peepholes, 2) * c
        enter = f(self.clipped(enter))
        forget = 1.0 - enter if self.input_forget else f(self.clipped(forget))
        c = forget * c + enter * g(self.clipped(new))
        if self.peepholes is not None:
            leave = leave + self.part(self.peepholes, 1) * c
        return f(self.clipped(leave)) * last(c), c


def _activations(node: Node, directions: int) -> list[Activation]:
    names = node.get("activations") or _DEFAULT[node.op] * directions
    alphas, betas = list(node.get("activation_alpha") or []), list(node.get("activation_beta") or [])
    made = []
    for i, name in enumerate(names):
        known = {n.lower(): n for n in _ACTIVATIONS}.get(name.lower())
        if known is None:
            raise NotImplementedError(
                f"activation {name!r}; export the model with one of {', '.join(_ACTIVATIONS)}"
            )
        function, alpha, beta = _ACTIVATIONS[known]
        alpha = alphas[i] if i < len(alphas) else alpha
        beta = betas[i] if i < len(betas) else beta
        made.append(lambda x, f=function, a=alpha, b=beta: f(x, a, b))
    return made


def _within_lengths(x: Any, lengths: Any) -> Any:
    """x (L, N, ...) with each sequence reversed within its length."""
    place = dt.reshape(dt.arange(x.shape[0]), (-1, 1))
    n = dt.reshape(dt.astype(lengths, "int64"), (1, -1))
    source = dt.where(place < n, n - 1 - place, place)
    return dt.take_along_axis(x, dt.broadcast_to(dt.reshape(source, (*source.shape, 1)), x.shape), axis=0)


def _direction(
    cell: _Cell, x: Any, state: tuple[Any, ...], lengths: Any, back: bool
) -> tuple[Any, tuple[Any, ...]]:
    """The outputs (L, N, H) and the last states. x: its part of the gates, (L, N, gates * H)."""

    def turned(v: Any) -> Any:
        if not back:
            return v
        return dt.flip(v, axis=0) if lengths is None else _within_lengths(v, lengths)

    def body(carry: tuple[Any, ...], given: Any) -> tuple[tuple[Any, ...], Any]:
        if lengths is None:
            made = cell.step(carry, given)
            return made, made[0]
        gates, t = given
        made = cell.step(carry, gates)
        runs = dt.reshape(lengths > t, (-1, 1))
        return tuple(dt.where(runs, new, old) for new, old in zip(made, carry)), dt.where(runs, made[0], 0.0)

    x = turned(x)
    steps = x if lengths is None else (x, dt.arange(x.shape[0], dtype=lengths.dtype))
    last, y = dt.scan(body, state, steps)
    return turned(y), last


def _network(
    node: Node, x: Any, w: Any, r: Any, b: Any, lengths: Any, first: tuple[Any, ...], peepholes: Any
) -> tuple[Any, ...]:
    """The outputs (L, directions, N, H) and each state's last values (directions, N, H)."""
    layout = node.get("layout", 0)
    directions, gates, hidden = int(w.shape[0]), _GATES[node.op], int(r.shape[-1])
    activations = _activations(node, directions)
    if layout:
        x = dt.moveaxis(x, 0, 1)
        first = tuple(s if s is None else dt.moveaxis(s, 0, 1) for s in first)
    n_first = 1 if node.op != "LSTM" else 2
    zeros = None
    if any(s is None for s in first):
        zeros = dt.zeros((directions, x.shape[1], hidden), dtype=x.dtype)
    first = tuple(zeros if s is None else s for s in first)
    if made := _by_nn(node, x, w, r, b, lengths, first, peepholes, directions, hidden):
        y, *last = made
        y = dt.permute_dims(dt.reshape(y, (*y.shape[:2], directions, hidden)), (0, 2, 1, 3))
    else:
        limit = node.get("clip")
        clipped = (lambda v: dt.clip(v, -limit, limit)) if limit else (lambda v: v)
        each, ys, lasts = len(activations) // directions, [], []
        for d in range(directions):
            own, recurrent = (None, None) if b is None else (b[d, : gates * hidden], b[d, gates * hidden :])
            cell = _Cell(
                node.op, hidden, r[d], recurrent, None if peepholes is None else peepholes[d],
                activations[d * each : (d + 1) * each], clipped, bool(node.get("input_forget", 0)),
                bool(node.get("linear_before_reset", 0)),
            )  # fmt: skip
            back = d == 1 or node.get("direction", "forward") == "reverse"
            y, last = _direction(cell, nn.linear(x, w[d], own), tuple(s[d] for s in first), lengths, back)
            ys.append(y)
            lasts.append(last)
        y = dt.stack(ys, axis=1)
        last = [dt.stack([state[k] for state in lasts], axis=0) for k in range(n_first)]
    if layout:
        return dt.permute_dims(y, (2, 0, 1, 3)), *(dt.moveaxis(s, 0, 1) for s in last)
    return y, *last


def _by_nn(
    node: Node, x: Any, w: Any, r: Any, b: Any, lengths: Any, first: tuple[Any, ...], peepholes: Any,
    directions: int, hidden: int,
) -> tuple[Any, ...] | None:  # fmt: skip
    """The network by nn.lstm and its like, where it is one that they have."""
    names = [n.lower() for n in node.get("activations") or _DEFAULT[node.op] * directions]
    plain = lengths is None and peepholes is None and not node.get("clip") and not node.get("input_forget", 0)
    relu = node.op == "RNN" and names == ["relu"] * directions
    if not plain or not (relu or names == [n.lower() for n in _DEFAULT[node.op] * directions]):
        return None
    if node.get("direction", "forward") == "reverse" or (
        node.op == "GRU" and not node.get("linear_before_reset", 0)
    ):
        return None
    order = {"LSTM": (0, 2, 3, 1), "GRU": (1, 0, 2), "RNN": (0,)}[node.op]

    def ordered(v: Any, part: Any) -> Any:
        """A part of the weights with its gates in the order of nn's: once, where it is a constant."""

        def gates(v: Any) -> Any:
            v = v[part]
            return dt.concat([v[i * hidden : (i + 1) * hidden] for i in order], axis=0) if len(order) > 1 else v

        return node.importer.folded(gates, v)

    def matrix(v: Any, d: int) -> Any:
        """(gates * hidden, ...); a constant with the gates next to each other in memory, as products of few rows,
        those of a step, read them in vectors."""
        made = ordered(v, d)
        if not is_constant(made):
            return made
        return dt.permute_dims(node.importer.folded(lambda v: dt.copy(dt.permute_dims(v, (1, 0))), made), (1, 0))

    params = []
    for d in range(directions):
        params += [matrix(w, d), matrix(r, d)]
        if b is not None:
            half = len(order) * hidden
            params += [ordered(b, (d, slice(half))), ordered(b, (d, slice(half, None)))]
    how = {"has_biases": b is not None, "bidirectional": directions == 2}
    if node.op == "LSTM":
        return nn.lstm(x, first, params, **how)
    network = nn.gru if node.op == "GRU" else nn.rnn_relu if relu else nn.rnn_tanh
    return network(x, first[0], params, **how)


@onnx_op("LSTM")
def lstm(
    node: Node,
    x: Any,
    w: Any,
    r: Any,
    b: Any = None,
    lengths: Any = None,
    h: Any = None,
    c: Any = None,
    p: Any = None,
) -> Any:
    return _network(node, x, w, r, b, lengths, (h, c), p)


@onnx_op("GRU", "RNN")
def gru(node: Node, x: Any, w: Any, r: Any, b: Any = None, lengths: Any = None, h: Any = None) -> Any:
    return _network(node, x, w, r, b, lengths, (h,), None)


@onnx_op("DynamicQuantizeLSTM", domain=MICROSOFT, may_grow=True)
def dynamic_quantize_lstm(
    node: Node, x: Any, w: Any, r: Any, b: Any, lengths: Any, h: Any, c: Any, p: Any, w_scale: Any, w_zero: Any,
    r_scale: Any, r_zero: Any,
) -> Any:  # fmt: skip
    """An LSTM with integer weights (directions, input or hidden, 4 * hidden), by their real values. onnxruntime,
    which the op is from, also rounds x and each step's state to 8 bits, to multiply integers; they stay real here.
    """

    def real(q: Any, scale: Any, zero: Any) -> Any:
        columns = (int(q.shape[0]), 1, -1)  # a scale for each direction, or for each of its columns
        scale, zero = dt.reshape(scale, columns), dt.reshape(zero, columns)
        wide = dt.astype(dt.astype(q, "int32") - dt.astype(zero, "int32"), scale.dtype) * scale
        return dt.permute_dims(wide, (0, 2, 1))

    plain = node.like("LSTM")
    return _network(plain, x, real(w, w_scale, w_zero), real(r, r_scale, r_zero), b, lengths, (h, c), p)
