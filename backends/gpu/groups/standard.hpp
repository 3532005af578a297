// Types that the kernels' headers take of the C++ standard library, for compilers that have none: NVRTC, and those
// of C++ for OpenCL. What is not the same for both is in each backend's groups/device/standard.
#pragma once
using int8_t = signed char;
using int16_t = short;
using int32_t = int;
using int64_t = long;
using uint8_t = unsigned char;
using uint16_t = unsigned short;
using uint32_t = unsigned int;
using uint64_t = unsigned long;

namespace std {
template <bool, class A, class B>
struct conditional {
  using type = A;
};
template <class A, class B>
struct conditional<false, A, B> {
  using type = B;
};
template <bool condition, class A, class B>
using conditional_t = typename conditional<condition, A, B>::type;
template <bool, class T = void>
struct enable_if {};
template <class T>
struct enable_if<true, T> {
  using type = T;
};
template <bool condition, class T = void>
using enable_if_t = typename enable_if<condition, T>::type;

template <class A, class B>
inline constexpr bool is_same_v = false;
template <class A>
inline constexpr bool is_same_v<A, A> = true;
template <class T>
inline constexpr bool is_floating_point_v = is_same_v<T, float> || is_same_v<T, double>;
template <class T, class... Of>
inline constexpr bool is_any_of_v = (is_same_v<T, Of> || ...);
template <class T>
inline constexpr bool is_integral_v =
    is_any_of_v<T, bool, char, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>;
template <class T>
inline constexpr bool is_signed_v = T(-1) < T(0);
template <class T>
inline constexpr bool is_unsigned_v = is_integral_v<T> && !is_signed_v<T>;
template <class T>
using make_unsigned_t =
    conditional_t<sizeof(T) == 8, uint64_t,
                  conditional_t<sizeof(T) == 4, uint32_t, conditional_t<sizeof(T) == 2, uint16_t, uint8_t>>>;
}  // namespace std
