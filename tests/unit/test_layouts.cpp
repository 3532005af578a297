// The layouts of a call for kernels of many threads: dovetail/elementwise.hpp, product.hpp and types.hpp.
#include "check.hpp"

#include <cmath>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "dovetail/elementwise.hpp"
#include "dovetail/product.hpp"
#include "dovetail/types.hpp"

namespace {
std::mt19937_64 random_bits(20261122);  // the seed

// A tensor with an address and no memory; zero strides mean row-major.
struct Operand {
  std::vector<int64_t> shape, strides;
  DLTensor tensor{};

  Operand(std::vector<int64_t> its_shape, std::vector<int64_t> its_strides, void* data, DLDataType type = dvt::i32)
      : shape(std::move(its_shape)), strides(std::move(its_strides)) {
    if (strides.empty()) {
      strides.resize(shape.size());
      int64_t step = 1;
      for (size_t i = shape.size(); i-- > 0; step *= shape[i]) strides[i] = step;
    }
    tensor = {data, {12, 0}, int32_t(shape.size()), type, shape.data(), strides.data(), 0};
  }
  Operand(const Operand&) = delete;
};

struct Call {
  std::vector<const DLTensor*> in, out;
  dvt_call call{};

  Call(std::vector<const DLTensor*> inputs, const DLTensor* output) : in(std::move(inputs)), out{output} {
    call.struct_size = sizeof call, call.in = in.data(), call.out = out.data();
    call.n_in = uint32_t(in.size()), call.n_out = 1;
  }
};

// A kernel's use of a layout: out = first + 2 * second.
dvt_status run(char* const (&data)[3], const dvt::Layout<2>& how) {
  for (uint32_t row = 0; row < how.rows; ++row) {
    int64_t at[3] = {};
    uint32_t rest = row;
    for (uint32_t axis = 0; axis < how.axes; ++axis) {
      const uint32_t next = how.size[axis].quotient(rest), here = rest - next * how.size[axis].size;
      for (int k = 0; k < 3; ++k) at[k] += int64_t(here) * how.stride[axis][k];
      rest = next;
    }
    for (uint32_t column = 0; column < how.columns; ++column) {
      const auto read = [&](int k) {
        int32_t value;
        if (!data[k]) return std::memcpy(&value, &how.value[k], sizeof value), value;
        const int64_t along = how.varies >> k & 1 ? how.contiguous ? column : int64_t(column) * how.step[k] : 0;
        return reinterpret_cast<const int32_t*>(data[k])[at[k] + along];
      };
      const int64_t along = how.contiguous ? column : int64_t(column) * how.step[2];
      reinterpret_cast<int32_t*>(data[2])[at[2] + along] = read(0) + 2 * read(1);
    }
  }
  return DVT_OK;
}

int64_t address(const Operand& t, std::vector<int64_t> index) {
  int64_t at = 0;
  for (size_t i = 0; i < t.shape.size(); ++i) at += index[i] * t.strides[i];
  return at;
}

// Every element of an elementwise call over random strides, against loops over its shape.
void check_elementwise(const std::vector<int64_t>& shape) {
  constexpr int64_t capacity = 1 << 16;
  std::vector<int32_t> a(capacity), b(capacity), out(capacity, -1), expected;
  for (int64_t i = 0; i < capacity; ++i) a[size_t(i)] = int32_t(random_bits() % 1000), b[size_t(i)] = int32_t(i);
  const auto strides = [&] {  // row-major with gaps, some axes broadcast
    std::vector<int64_t> s(shape.size());
    int64_t step = 1 + int64_t(random_bits() % 2);
    for (size_t i = shape.size(); i-- > 0; step *= shape[i]) s[i] = random_bits() % 4 ? step : 0;
    return s;
  };
  Operand x(shape, strides(), a.data()), y(shape, strides(), b.data()), z(shape, {}, out.data());
  Call c({&x.tensor, &y.tensor}, &z.tensor);
  expected = out;
  std::vector<int64_t> index(shape.size());
  for (int64_t i = 0, n = dvt::size(&z.tensor); i < n; ++i) {
    int64_t rest = i;
    for (size_t axis = shape.size(); axis-- > 0; rest /= shape[axis]) index[axis] = rest % shape[axis];
    expected[size_t(i)] = a[size_t(address(x, index))] + 2 * b[size_t(address(y, index))];
  }
  CHECK_EQ(dvt::for_each_launch<2>(&c.call, run), DVT_OK);
  CHECK(out == expected);
}
}  // namespace

TEST(every_element_of_a_call_is_in_one_launch) {
  for (int i = 0; i < 20; ++i) {
    check_elementwise({7});
    check_elementwise({1, 1});
    check_elementwise({3, 40});
    check_elementwise({40, 3});
    check_elementwise({2, 3, 4, 5});
    check_elementwise({2, 3, 2, 3, 2, 3, 2});  // more axes than a launch has
  }
}

TEST(a_host_scalar_comes_with_the_layout) {
  std::vector<int32_t> a{1, 2, 3}, out(3);
  int32_t scalar = 10;
  Operand x({3}, {}, a.data()), y({}, {}, &scalar), z({3}, {}, out.data());
  Call c({&x.tensor, &y.tensor}, &z.tensor);
  CHECK_EQ(dvt::for_each_launch<2>(&c.call, run), DVT_OK);
  CHECK(out == (std::vector<int32_t>{21, 22, 23}));
}

TEST(a_contiguous_array_is_one_launch) {
  Operand x({4, 5, 6}, {}, nullptr), z({4, 5, 6}, {}, nullptr);
  Call c({&x.tensor}, &z.tensor);
  int launches = 0;
  const auto count = [&](char* const(&)[2], const dvt::Layout<1>& how) {
    CHECK(how.is_dense() && how.columns == 120);
    return ++launches, DVT_OK;
  };
  CHECK_EQ(dvt::for_each_launch<1>(&c.call, count), DVT_OK);
  CHECK_EQ(launches, 1);
}

TEST(large_calls_are_split_and_a_failure_ends_them) {
  const int64_t n = (int64_t{1} << 32) + 5;
  Operand x({n}, {}, nullptr, dvt::u8), z({n}, {}, nullptr, dvt::u8);
  Call c({&x.tensor}, &z.tensor);
  std::vector<uint64_t> begins, sizes;
  const auto note = [&](char* const(&)[2], const dvt::Layout<1>& how) {
    return sizes.push_back(uint64_t{how.rows} * how.columns), sizes.size() == 4 ? DVT_OOM : DVT_OK;
  };
  CHECK_EQ(dvt::for_each_launch<1>(&c.call, note), DVT_OK);
  CHECK(sizes == (std::vector<uint64_t>{uint64_t{1} << 31, uint64_t{1} << 31, 5}));
  CHECK_EQ(dvt::for_each_launch<1>(&c.call, note), DVT_OOM);
  CHECK_EQ(sizes.size(), 4u);
}

TEST(a_divisor_divides) {
  for (int i = 0; i < 100000; ++i) {
    const auto size = uint32_t(1 + random_bits() % (random_bits() % 2 ? 100 : (uint64_t{1} << 31) - 1));
    const auto n = uint32_t(random_bits() >> 33);
    CHECK_EQ(dvt::divisor(size).quotient(n), n / size);
  }
}

namespace {
// (matrix, row, column) of an operand of a product, as its address.
int64_t address_in(const dvt::Product& p, uint64_t matrix, const int64_t (&batch)[dvt::most_batch_axes]) {
  int64_t at = 0;
  for (uint32_t axis = p.axes; axis-- > 0; matrix /= uint64_t(p.batch[axis]))
    at += int64_t(matrix % uint64_t(p.batch[axis])) * batch[axis];
  return at;
}

// The addresses of all pairs that a product multiplies, for each element of c in order.
std::vector<std::pair<int64_t, int64_t>> pairs(const dvt::Product& p) {
  std::vector<std::pair<int64_t, int64_t>> all;
  for (uint64_t matrix = 0; matrix < p.matrices; ++matrix)
    for (uint64_t i = 0; i < p.m; ++i)
      for (uint64_t j = 0; j < p.n; ++j)
        for (uint64_t k = 0; k < p.k; ++k)
          all.emplace_back(address_in(p, matrix, p.a_batch) + int64_t(i) * p.a_row + int64_t(k) * p.a_column,
                           address_in(p, matrix, p.b_batch) + int64_t(k) * p.b_row + int64_t(j) * p.b_column);
  return all;
}
}  // namespace

TEST(a_matmul_is_a_batch_of_products) {
  Operand a({2, 1, 3, 4}, {}, nullptr), b({5, 4, 2}, {}, nullptr), c({2, 5, 3, 2}, {}, nullptr);
  Call call({&a.tensor, &b.tensor}, &c.tensor);
  std::vector<std::pair<int64_t, int64_t>> expected;
  for (int64_t x = 0; x < 2; ++x)
    for (int64_t y = 0; y < 5; ++y)
      for (int64_t i = 0; i < 3; ++i)
        for (int64_t j = 0; j < 2; ++j)
          for (int64_t k = 0; k < 4; ++k) expected.emplace_back(address(a, {x, 0, i, k}), address(b, {y, k, j}));
  CHECK(pairs(dvt::product_of_matmul(&call.call)) == expected);

  Operand vector({4}, {3}, nullptr);
  Call row({&vector.tensor, &b.tensor}, &c.tensor);
  const dvt::Product p = dvt::product_of_matmul(&row.call);
  CHECK(p.m == 1 && p.n == 2 && p.k == 4 && p.matrices == 5 && p.a_column == 3);
}

TEST(a_shared_matrix_gets_more_rows) {
  Operand a({6, 3, 4}, {}, nullptr), b({4, 2}, {}, nullptr), w({2, 4}, {}, nullptr), c({6, 3, 2}, {}, nullptr);
  Call matmul({&a.tensor, &b.tensor}, &c.tensor), linear({&a.tensor, &w.tensor, nullptr}, &c.tensor);
  const dvt::Product p = dvt::product_of_matmul(&matmul.call), q = dvt::product_of_linear(&linear.call);
  CHECK(p.m == 18 && p.matrices == 1 && p.axes == 0 && p.b_row == 2 && p.b_column == 1);
  Operand lines({6, 1, 4}, {8, 4, 1}, nullptr), sums({6, 1, 2}, {}, nullptr);
  Call apart({&lines.tensor, &b.tensor}, &sums.tensor);
  const dvt::Product r = dvt::product_of_matmul(&apart.call);
  CHECK(r.m == 6 && r.a_row == 8 && r.matrices == 1);
  CHECK(q.m == 18 && q.matrices == 1 && q.axes == 0 && q.b_row == 1 && q.b_column == 4);
}

TEST(types_have_numbers_and_names) {
  using namespace dvt::types;
  std::set<size_t> numbers;
  std::set<std::string> names;
  for (const DLDataType type : dvt::types::boolean + integers + floats + floats8 + sizes)
    numbers.insert(type_index(type)), names.insert(type_name(type));
  // Ten names are unused: a complex number has the place of its size, and no kernel computes with stored dtypes.
  CHECK(numbers.size() == type_count - 10 && names.size() == numbers.size() && *numbers.rbegin() == type_count - 1);
  CHECK(type_index(dvt::c64) == type_index(dvt::any(64)) && type_index(dvt::c128) == type_index(dvt::any(128)));
  CHECK(type_name(dvt::bf16) == std::string("bf16") && size_index(dvt::f64) == type_index(dvt::any(64)));
  CHECK(computed_bytes(dvt::bf16) == 4 && computed_bytes(dvt::i8) == 1);
}

TEST(an_attribute_becomes_an_element) {
  dvt_attr attr{};
  dvt_call call{};
  call.struct_size = sizeof call, call.attr = &attr, call.n_attr = 1;
  attr.kind = DVT_A_F64;
  const auto bf16 = [&](double x) {
    attr.v.f = x;
    return uint16_t(dvt::types::scalar_of(dvt::Attrs(&call), 0, dvt::bf16).bits[0]);
  };
  CHECK(bf16(1) == 0x3F80 && bf16(-2) == 0xC000 && bf16(INFINITY) == 0x7F80 && (bf16(NAN) & 0x7FFF) > 0x7F80);
  CHECK(bf16(1 + 0x1p-8) == 0x3F80 && bf16(1 + 3 * 0x1p-8) == 0x3F82);  // ties go to even
  CHECK(bf16(1 + 0x1p-8 + 0x1p-40) == 0x3F81);  // and a value that float32 would round to a tie is not a tie
  const auto f8 = [&](DLDataType type, double x) {
    attr.v.f = x;
    return uint8_t(dvt::types::scalar_of(dvt::Attrs(&call), 0, type).bits[0]);
  };
  CHECK(f8(dvt::f8e4m3fn, 1) == 0x38 && f8(dvt::f8e4m3fn, -448) == 0xFE && f8(dvt::f8e4m3fn, 464) == 0x7E);
  CHECK(f8(dvt::f8e4m3fn, 464.0001) == 0x7F && f8(dvt::f8e4m3fn, -INFINITY) == 0xFF &&
        f8(dvt::f8e4m3fn, NAN) > 0x7E);
  CHECK(f8(dvt::f8e4m3fn, 0x1p-9) == 1 && f8(dvt::f8e4m3fn, 0x1p-10) == 0 && f8(dvt::f8e4m3fn, 0x1.8p-9) == 2);
  CHECK(f8(dvt::f8e5m2, 1) == 0x3C && f8(dvt::f8e5m2, 61439) == 0x7B && f8(dvt::f8e5m2, 61440) == 0x7C);
  CHECK(f8(dvt::f8e5m2, -0x1p-16) == 0x81 && f8(dvt::f8e5m2, -0.0) == 0x80 && f8(dvt::f8e5m2, 1e300) == 0x7C);
  CHECK(f8(dvt::f8e5m2, 1.125) == 0x3C && f8(dvt::f8e5m2, 1.125 + 0x1p-40) == 0x3D);  // rounded once
  attr.kind = DVT_A_I64, attr.v.i = -1;
  CHECK(dvt::types::scalar_of(dvt::Attrs(&call), 0, dvt::i16).bits[0] == ~uint64_t{0});
}

CHECK_MAIN
