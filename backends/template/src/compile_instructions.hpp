// What compiled code is made of: loops over a part of a row, for all that the kernels compute. With code that you
// generate, none of this is left but the answer to the question which ops and types there is code for.
#pragma once
#include <algorithm>
#include <functional>
#include <map>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "half.hpp"
#include "ops.hpp"

using dvt::Compute;

struct Elements {
  char* data;
  int64_t step;  // bytes; 0: one element for all
};
using Function = void (*)(const Elements* in, Elements out, int64_t n);

template <class F, class Out, class... In, size_t... I>
void apply(const Elements* in, Elements out, int64_t n, std::index_sequence<I...>) {
  for (int64_t i = 0; i < n; ++i)
    *reinterpret_cast<Out*>(out.data + i * out.step) =
        F()(*reinterpret_cast<const In*>(in[I].data + i * in[I].step)...);
}
template <class F, class Out, class... In>
void loop(const Elements* in, Elements out, int64_t n) {
  apply<F, Out, In...>(in, out, n, std::index_sequence_for<In...>());
}

// A register has elements of the type that the device computes with: float32 for narrow floats. To and from memory,
// and to another type, as after astype and each node with DVT_P_ROUND_EACH:
template <class T>
struct Load {
  Compute<T> operator()(T x) const { return Compute<T>(x); }
};
template <class T>
struct Store {
  T operator()(Compute<T> x) const { return convert<T>(x); }
};
template <class To>
struct Cast {
  template <class From>
  Compute<To> operator()(From x) const {
    return Compute<To>(convert<To>(x));
  }
};

struct ElementCode {
  DLDataType type, computed;
  Function load, store;
  std::vector<std::pair<DLDataType, Function>> casts;  // to it, by the type in the register
  void (*number)(bool is_real, dvt_number_value, char* out);
};
template <class T>
ElementCode element_code() {
  ElementCode code{
      type_of<T>(), dvt::dtype_of<Compute<T>>(), loop<Load<T>, Compute<T>, T>, loop<Store<T>, T, Compute<T>>, {},
      nullptr};
  for_each_type(Types<bool>() + Floats() + Signed() + Unsigned(), [&](auto from) {
    using From = decltype(from);
    code.casts.emplace_back(dvt::dtype_of<From>(), loop<Cast<T>, Compute<T>, From>);
  });
  code.number = [](bool is_real, dvt_number_value x, char* out) {
    const auto y = is_real ? Cast<T>()(x.f) : Cast<T>()(x.i);
    std::memcpy(out, &y, sizeof y);
  };
  return code;
}

struct MapCode {
  std::vector<DLDataType> in;
  DLDataType out;
  Function run;
};
struct FoldCode {
  DLDataType type;
  size_t bytes;  // of its state
  void (*begin)(void* state);
  void (*take)(void* state, Elements in, int64_t n);
  void (*end)(const void* state, char* out);
};
template <class T, class State>
FoldCode fold_code() {
  return {dvt::dtype_of<T>(), sizeof(State), [](void* state) { new (state) State; },
          [](void* state, Elements in, int64_t n) {
            for (int64_t i = 0; i < n; ++i)
              static_cast<State*>(state)->take(*reinterpret_cast<const T*>(in.data + i * in.step));
          },
          [](const void* state, char* out) {
            *reinterpret_cast<T*>(out) = T(static_cast<const State*>(state)->result());
          }};
}

// All that there is code for, from the lists that the kernels are made of.
struct Codes {
  std::vector<ElementCode> elements;
  std::multimap<std::string, MapCode, std::less<>> maps;
  std::multimap<std::string, FoldCode, std::less<>> folds;

  Codes() {
    for_each_type(all_types, [&](auto t) { elements.push_back(element_code<decltype(t)>()); });
    for_each_map([&](auto map) { add(map); });
    for_each_fold([&](auto fold) { add(fold); });
  }
  template <class F, class Out, class... In>
  void add(Map<F, Out, In...> map) {
    maps.emplace(map.op, MapCode{{type_in_row<F, In>()...}, type_in_row<F, Out>(), loop<F, Out, In...>});
  }
  template <class T, class State>
  void add(Fold<T, State> fold) {
    folds.emplace(fold.op, fold_code<T, State>());
  }
  const ElementCode* element(DLDataType type) const {
    const auto found =
        std::find_if(elements.begin(), elements.end(), [&](auto& e) { return dvt::same(e.type, type); });
    return found == elements.end() ? nullptr : &*found;
  }
};
inline const Codes& codes() {
  static const Codes& all = *new Codes;
  return all;
}
