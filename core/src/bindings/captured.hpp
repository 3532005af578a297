// The way to what a compiled function reads by itself: hops from object to object, and what is expected on it.
#pragma once
#include <pybind11/pybind11.h>

namespace dovetail::bindings {
namespace py = pybind11;

// A hop comes from `parent` to an object by `key`. The search and each call use the same one, and it runs no code
// of the objects' classes: what properties and __getattr__ give is not looked at.
struct Hop {
  enum Kind : uint8_t {
    constant,   // to `key` itself
    argument,   // to the parent, an object among the arguments
    attribute,  // in the instance's __dict__, else what its class has
    slot,       // by the descriptor `key` of a type that is written in C: __slots__, __class__, __closure__
    lookup,     // of a class: what it or a base has
    item,       // of a dict, by a plain value
    element,    // the `at`th of a list, tuple, deque or set; the `at`th value of a dict
    key_at,     // the `at`th key of a dict
  };
  Kind kind;
  py::object key;
  Py_ssize_t at = 0;
  mutable Py_ssize_t place = 0;  // of `key` in the dict that was met last, as PyDict_Next() counts

  // A new reference; nullptr, without an exception, where there is nothing.
  PyObject* follow(PyObject* parent) const;
};

// What is expected of an object; the default expects nothing.
struct Expectation {
  enum Kind : uint8_t { nothing, type, identity, value };
  Kind kind = nothing;
  py::object what;         // the type, the object, or a value as same_value() takes it
  Py_ssize_t length = -1;  // of a container, or any
  py::object keys;         // a tuple: those of a dict, in this order, or weak references to them; or nothing

  bool holds(PyObject*) const;
};

// Of a weak reference: what it leads to, which others hold; nullptr: it is gone. Others as they are.
PyObject* target(PyObject*);

}  // namespace dovetail::bindings
