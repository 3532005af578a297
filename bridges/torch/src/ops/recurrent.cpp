// Cells of LSTMs and GRUs. torch multiplies by the weights; a device that is not the CPU does the rest in one op.
#include <ATen/ops/_thnn_fused_gru_cell_backward_ops.h>
#include <ATen/ops/_thnn_fused_gru_cell_ops.h>
#include <ATen/ops/_thnn_fused_lstm_cell_backward_impl_ops.h>
#include <ATen/ops/_thnn_fused_lstm_cell_ops.h>
#include <ATen/ops/cat.h>

#include "call.hpp"

namespace dovetail_torch {
namespace {
namespace aten = at::_ops;

Tensor with_bias(const Tensor& gates, const OptionalTensor& bias) { return given(bias) ? gates + *bias : gates; }
Tensor of_bias(const Tensor& grad_gates, bool has_bias) { return has_bias ? grad_gates.sum(0) : Tensor(); }
Tensor through_sigmoid(const Tensor& grad, const Tensor& y) { return grad * (1 - y) * y; }
Tensor through_tanh(const Tensor& grad, const Tensor& y) { return grad * (1 - y * y); }

// The workspace holds the gates for the gradient: input, forget, cell, output.
std::tuple<Tensor, Tensor, Tensor> lstm_cell(const Tensor& from_input, const Tensor& from_hidden, const Tensor& c,
                                             const OptionalTensor& input_bias, const OptionalTensor& hidden_bias) {
  const auto sums = (with_bias(from_input, input_bias) + with_bias(from_hidden, hidden_bias)).chunk(4, 1);
  const Tensor i = sums[0].sigmoid(), f = sums[1].sigmoid(), g = sums[2].tanh(), o = sums[3].sigmoid();
  const Tensor next = f * c + i * g;
  return {o * next.tanh(), next, at::cat({i, f, g, o}, 1)};
}
std::tuple<Tensor, Tensor, Tensor> lstm_cell_backward(const OptionalTensor& grad_h, const OptionalTensor& grad_c,
                                                      const Tensor& c, const Tensor& next, const Tensor& workspace,
                                                      bool has_bias) {
  if (!given(grad_h) && !given(grad_c)) return {};
  const auto gates = workspace.chunk(4, 1);
  const Tensor &i = gates[0], &f = gates[1], &g = gates[2], &o = gates[3], y = next.tanh();
  const Tensor dh = given(grad_h) ? *grad_h : y.new_zeros(y.sizes());
  const Tensor through = through_tanh(dh * o, y), dc = given(grad_c) ? through + *grad_c : through;
  const Tensor grad = at::cat(
      {through_sigmoid(dc * g, i), through_sigmoid(dc * c, f), through_tanh(dc * i, g), through_sigmoid(dh * y, o)},
      1);
  return {grad, dc * f, of_bias(grad, has_bias)};
}

// The workspace holds the gates reset, update and new, the state before, and the hidden part of the new one.
std::tuple<Tensor, Tensor> gru_cell(const Tensor& from_input, const Tensor& from_hidden, const Tensor& h,
                                    const OptionalTensor& input_bias, const OptionalTensor& hidden_bias) {
  const auto x = with_bias(from_input, input_bias).chunk(3, 1);
  const auto y = with_bias(from_hidden, hidden_bias).chunk(3, 1);
  const Tensor r = (x[0] + y[0]).sigmoid(), z = (x[1] + y[1]).sigmoid(), n = (x[2] + r * y[2]).tanh();
  return {n + z * (h - n), at::cat({r, z, n, h, y[2]}, 1)};
}
std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> gru_cell_backward(const Tensor& grad, const Tensor& workspace,
                                                                     bool has_bias) {
  const auto kept = workspace.chunk(5, 1);
  const Tensor &r = kept[0], &z = kept[1], &n = kept[2], &h = kept[3], &hidden = kept[4];
  const Tensor dn = through_tanh(grad * (1 - z), n), dz = through_sigmoid(grad * (h - n), z);
  const Tensor dr = through_sigmoid(dn * hidden, r);
  const Tensor to_input = at::cat({dr, dz, dn}, 1), to_hidden = at::cat({dr, dz, dn * r}, 1);
  return {to_input, to_hidden, grad * z, of_bias(to_input, has_bias), of_bias(to_hidden, has_bias)};
}
}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  implement<aten::_thnn_fused_lstm_cell>(m, &lstm_cell);
  implement<aten::_thnn_fused_lstm_cell_backward_impl>(m, &lstm_cell_backward);
  implement<aten::_thnn_fused_gru_cell>(m, &gru_cell);
  implement<aten::_thnn_fused_gru_cell_backward>(m, &gru_cell_backward);
}
}  // namespace dovetail_torch
