"""Recurrent networks over dovetail.scan: lstm, gru, rnn_tanh and rnn_relu, with torch's arrangement of weights."""

from __future__ import annotations

from functools import cache

from dovetail import _core
from dovetail._array import expect_array
from dovetail._core import Array
from dovetail._trace import recording_graph

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    Step = Callable[[tuple[Array, ...], Array, Array, Array | None], tuple[Array, ...]]

__all__ = ["gru", "lstm", "rnn_relu", "rnn_tanh"]

_op = _core.op_function


def _gates(state: Array, w_hh: Array, b_hh: Array | None) -> Array:
    return _op("linear")(state, w_hh, b_hh)


def _parts(gates: Array, n: int) -> list[Array]:
    size = gates.shape[-1] // n
    return [gates[..., k * size : (k + 1) * size] for k in range(n)]


def _lstm_step(state: tuple[Array, ...], given: Array, w_hh: Array, b_hh: Array | None) -> tuple[Array, ...]:
    h, c = state  # each gate's sum by itself: the views of what is added are read by the group that the sums are in
    enter, forget, new, leave = (
        a + b for a, b in zip(_parts(given, 4), _parts(_gates(h, w_hh, b_hh), 4), strict=True)
    )
    c = _op("sigmoid")(forget) * c + _op("sigmoid")(enter) * _op("tanh")(new)
    return _op("sigmoid")(leave) * _op("tanh")(c), c


def _gru_step(state: tuple[Array, ...], given: Array, w_hh: Array, b_hh: Array | None) -> tuple[Array, ...]:
    (h,) = state
    (r, z, n), (own_r, own_z, own_n) = _parts(given, 3), _parts(_gates(h, w_hh, b_hh), 3)
    r, z = _op("sigmoid")(r + own_r), _op("sigmoid")(z + own_z)
    n = _op("tanh")(n + r * own_n)
    return (n + z * (h - n),)


@cache
def _plain_step(activation: str) -> Step:
    def step(state: tuple[Array, ...], given: Array, w_hh: Array, b_hh: Array | None) -> tuple[Array, ...]:
        return (_op(activation)(given + _gates(state[0], w_hh, b_hh)),)

    return step


class _Network:
    """The arguments that all recurrent networks have, checked."""

    def __init__(
        self, what: str, x: Array, states: Sequence[Array], params: Sequence[Array], gates: int,
        has_biases: bool, num_layers: int, bidirectional: bool, batch_first: bool,
    ):  # fmt: skip
        expect_array(what, x)
        if x.ndim not in (2, 3):
            raise ValueError(f"[{what}] x: got shape {x.shape}, expected (L, N, I), or (L, I) without a batch")
        self.what, self.batched, self.batch_first = what, x.ndim == 3, batch_first
        if not self.batched:
            x = _op("expand_dims")(x, axis=1)
        elif batch_first:
            x = _op("permute_dims")(x, (1, 0, 2))
        self.x, self.directions, self.layers = x, 2 if bidirectional else 1, num_layers
        each = 4 if has_biases else 2
        if num_layers < 1 or len(params) != each * num_layers * self.directions:
            raise ValueError(
                f"[{what}] params: got {len(params)} arrays, expected {each} for each of {num_layers} layers and "
                f"{self.directions} directions"
            )
        self.params = [(*params[i : i + each], None, None)[:4] for i in range(0, len(params), each)]
        hidden = self._check_params(gates)
        self.states = [self._state(state, hidden) for state in states]

    def _check_params(self, gates: int) -> int:
        """H, by the first w_hh; the others have the shapes that follow."""
        for p in self.params:
            for array in p:
                if array is not None:
                    expect_array(self.what, array, "params")
        first = self.params[0][1].shape
        if len(first) != 2 or first[0] != gates * first[1]:
            raise ValueError(f"[{self.what}] params: got w_hh of shape {first}, expected ({gates} H, H)")
        rows, hidden = first
        for i, p in enumerate(self.params):
            layer = i // self.directions
            size = hidden * self.directions if layer else self.x.shape[-1]
            shapes = {"w_ih": (rows, size), "w_hh": first, "b_ih": (rows,), "b_hh": (rows,)}
            for array, (name, expected) in zip(p, shapes.items(), strict=True):
                if array is not None and array.shape != expected:
                    raise ValueError(
                        f"[{self.what}] params: got {name} of shape {array.shape} in layer {layer}, "
                        f"expected {expected}"
                    )
        return hidden

    def _state(self, state: Array, hidden: int) -> Array:
        expect_array(self.what, state, "hx")
        state = state if self.batched else _op("expand_dims")(state, axis=1)
        expected = (self.layers * self.directions, self.x.shape[1], hidden)
        if state.shape != expected:
            raise ValueError(f"[{self.what}] hx: got shape {state.shape}, expected {expected}, of a batch")
        return state

    def _run(self, step: Step, backwards: bool) -> Callable[..., tuple[tuple[Array, ...], Array]]:
        if recording_graph([self.x]) is not None:
            return _one_direction(step, backwards)
        kind = self.x.device, self.x.dtype.name, self.params[0][2] is None, _core.autocast_dtype(self.x.device)
        return _compiled(self.what, step, backwards, *kind)

    def run(self, step: Step) -> tuple[Array, ...]:
        """The last layer's outputs, and each state's last values."""
        x, last = self.x, []
        runs = [self._run(step, direction == 1) for direction in range(self.directions)]
        for layer in range(self.layers):
            outputs = []
            for direction in range(self.directions):
                i = layer * self.directions + direction
                state, y = runs[direction](x, tuple(s[i] for s in self.states), self.params[i])
                outputs.append(y)
                last.append(state)
            x = outputs[0] if self.directions == 1 else _op("concat")(outputs, axis=-1)
        finals = [_op("stack")([state[k] for state in last], axis=0) for k in range(len(self.states))]
        if not self.batched:
            return _op("squeeze")(x, 1), *(_op("squeeze")(final, 1) for final in finals)
        return (_op("permute_dims")(x, (1, 0, 2)) if self.batch_first else x), *finals


def _one_direction(step: Step, backwards: bool) -> Callable[..., tuple[tuple[Array, ...], Array]]:
    def recurrent(x: Array, state: tuple[Array, ...], params: tuple[Any, ...]) -> tuple[tuple[Array, ...], Array]:
        """The states after all of x (L, N, I), and the outputs (L, N, H). What does not depend on the state is one
        product for all of x."""
        from dovetail._control import scan

        w_ih, w_hh, b_ih, b_hh = params
        given = _op("linear")(x, w_ih, b_ih)
        if backwards:
            given = _op("flip")(given, axis=0)

        def body(carry: tuple[Array, ...], gates: Array) -> tuple[tuple[Array, ...], Array]:
            carry = step(carry, gates, w_hh, b_hh)
            return carry, carry[0]

        state, y = scan(body, state, given)
        return state, _op("flip")(y, axis=0) if backwards else y

    return recurrent


@cache
def _compiled(what: str, step: Step, backwards: bool, *kind: Any) -> Callable[..., tuple[tuple[Array, ...], Array]]:
    """The same for calls outside of traces: devices run a step's nodes as groups, with the bits of the calls one by
    one. kind: what a trace is made for, of which one function would count too many."""
    from dovetail._compile import compile

    run = _one_direction(step, backwards)
    run.__qualname__ = f"nn.{what}"
    return compile(run, numerics="eager")


def lstm(
    x: Array,
    hx: tuple[Array, Array],
    params: Sequence[Array],
    *,
    has_biases: bool = True,
    num_layers: int = 1,
    bidirectional: bool = False,
    batch_first: bool = False,
) -> tuple[Array, Array, Array]:
    """A long short-term memory network over a sequence: (outputs, h, c).

    x: (L, N, I), with batch_first (N, L, I), or (L, I) without a batch. hx: h and c to begin with, each (layers *
    directions, N, H). params: w_ih (4 H, I), w_hh (4 H, H) and, with has_biases, b_ih and b_hh (4 H,) of each
    direction of each layer, in this order, with the gates in the order input, forget, cell, output: those of
    torch's LSTM. outputs: (L, N, directions * H) of the last layer; h and c: of the last step, as hx. Raises
    ValueError where shapes do not match.
    """
    if not isinstance(hx, (tuple, list)) or len(hx) != 2:
        raise TypeError(f"[lstm] hx: got {type(hx).__name__}, expected a tuple (h, c)")
    network = _Network("lstm", x, hx, params, 4, has_biases, num_layers, bidirectional, batch_first)
    return network.run(_lstm_step)


def gru(
    x: Array,
    hx: Array,
    params: Sequence[Array],
    *,
    has_biases: bool = True,
    num_layers: int = 1,
    bidirectional: bool = False,
    batch_first: bool = False,
) -> tuple[Array, Array]:
    """A network of gated recurrent units over a sequence: (outputs, h).

    As lstm, with one state, and 3 H rows in params: the gates reset, update, new.
    """
    return _Network("gru", x, (hx,), params, 3, has_biases, num_layers, bidirectional, batch_first).run(_gru_step)


def rnn_tanh(
    x: Array,
    hx: Array,
    params: Sequence[Array],
    *,
    has_biases: bool = True,
    num_layers: int = 1,
    bidirectional: bool = False,
    batch_first: bool = False,
) -> tuple[Array, Array]:
    """A network of h = tanh(w_ih x + b_ih + w_hh h + b_hh) over a sequence: (outputs, h).

    As lstm, with one state and H rows in params.
    """
    network = _Network("rnn_tanh", x, (hx,), params, 1, has_biases, num_layers, bidirectional, batch_first)
    return network.run(_plain_step("tanh"))


def rnn_relu(
    x: Array,
    hx: Array,
    params: Sequence[Array],
    *,
    has_biases: bool = True,
    num_layers: int = 1,
    bidirectional: bool = False,
    batch_first: bool = False,
) -> tuple[Array, Array]:
    """A network of h = relu(w_ih x + b_ih + w_hh h + b_hh) over a sequence: (outputs, h).

    As lstm, with one state and H rows in params.
    """
    network = _Network("rnn_relu", x, (hx,), params, 1, has_biases, num_layers, bidirectional, batch_first)
    return network.run(_plain_step("relu"))
