// Streams and events.
#include "bindings/python_device.hpp"

namespace dovetail::bindings {
namespace {
// A queue of its own until the object dies, or a device's default one.
class PyStream {
 public:
  PyStream(Device& device, int priority) : stream_(device.new_stream(priority)) {}
  explicit PyStream(Stream& borrowed) : stream_(&borrowed) {}
  ~PyStream() {
    if (stream_ != stream_->device.default_stream) stream_->device.free_stream(stream_);
  }
  PyStream(const PyStream&) = delete;
  Stream& get() const { return *stream_; }

 private:
  Stream* stream_;
};

py::object current(const py::object& device) {
  Device& d = to_device(device.ptr());
  return call_lazy("_streams", "current", py::handle(device_object(d)));
}

template <class T>
T& expect(const char* function, const char* what, const py::object& o) {
  if (!py::isinstance<T>(o))
    throw Error(ErrorKind::type,
                std::string("[") + function + "] expected a dovetail." + what + ", got " + shown(o.ptr()));
  return o.cast<T&>();
}
Stream& to_stream(const char* function, const py::object& o) {
  return expect<PyStream>(function, "Stream", o).get();
}
Event& to_event(const char* function, const py::object& o) { return expect<Event>(function, "Event", o); }

template <class T>
py::object refuse_pickle(const T&) {
  throw Error(ErrorKind::type, "cannot pickle a stream or an event: it belongs to its process");
}

Stream& stream_or_current(const char* function, const py::object& o, Device& device) {
  return o.is_none() ? current_stream(device) : to_stream(function, o);
}
}  // namespace

void make_streams(py::module_& m) {
  py::class_<PyStream>(
      m, "Stream",
      "An in-order queue of a device. Work on different streams may overlap; arrays keep track of the streams "
      "that use them, so that results never depend on it. Also a context manager: calls of this thread "
      "within it go to the stream.",
      py::is_final())
      .def_property_readonly(
          "device",
          [](const PyStream& s) { return py::reinterpret_borrow<py::object>(device_object(s.get().device)); })
      .def_property_readonly("is_default",
                             [](const PyStream& s) { return &s.get() == s.get().device.default_stream; })
      .def(
          "synchronize", [](const PyStream& s) { s.get().synchronize(); }, "Waits for all work on the stream.")
      .def(
          "query", [](const PyStream& s) { return s.get().idle(); }, "Whether all work on the stream is done.")
      .def(
          "wait_stream",
          [](const PyStream& s, const py::object& other) { s.get().wait_for(to_stream("wait_stream", other)); },
          "Work enqueued here from now on runs after what is now enqueued on the other stream.")
      .def("wait_event", [](const PyStream& s, const py::object& e) { to_event("wait_event", e).wait(s.get()); })
      .def(
          "record_event",
          [](const PyStream& s, const py::object& event) {
            py::object e = event.is_none()
                               ? py::cast(new Event(s.get().device), py::return_value_policy::take_ownership)
                               : event;
            to_event("record_event", e).record(s.get());
            return e;
          },
          py::arg("event") = py::none())
      .def("__reduce__", refuse_pickle<PyStream>)
      .def("__enter__", [](const py::object& self) { return call_lazy("_streams", "enter", self); })
      .def("__exit__", [](const py::object& self, const py::args&) { call_lazy("_streams", "leave", self); })
      .def("__repr__", [](const PyStream& s) {
        return "<dovetail.Stream of " + s.get().device.name +
               (&s.get() == s.get().device.default_stream ? ", the default one>" : ">");
      });
  m.def(
      "stream_handle", [](const PyStream& s) { return reinterpret_cast<uintptr_t>(s.get().handle); },
      "Address of a stream's dvt_stream, for the conformance suite, which calls the device's functions directly.");
  py::class_<Event>(m, "Event", "A point in a stream: to wait for, and with timing=True to measure from.",
                    py::is_final())
      .def(
          "record",
          [](Event& e, const py::object& stream) { e.record(stream_or_current("record", stream, e.device())); },
          py::arg("stream") = py::none(),
          "Marks the end of the stream as it is now; by default that of the current stream.")
      .def(
          "wait", [](Event& e, const py::object& stream) { e.wait(stream_or_current("wait", stream, e.device())); },
          py::arg("stream") = py::none(), "Work enqueued on the stream from now on runs after the event.")
      .def("__reduce__", refuse_pickle<Event>)
      .def(
          "synchronize", [](Event& e) { e.synchronize(); }, "Waits for the event.")
      .def(
          "query", [](Event& e) { return e.query(); },
          "Whether the event has passed; True if it was never recorded.")
      .def(
          "elapsed_ns",
          [](Event& from, const py::object& to) { return Event::elapsed_ns(from, to_event("elapsed_ns", to)); },
          "Nanoseconds of device time from this event to a later one; both with timing=True and passed.");
  make_with_new(m.attr("Stream"),
                py::cpp_function([](const py::object& device,
                                    int priority) { return new PyStream(to_device(device.ptr()), priority); },
                                 py::name("Stream"), py::arg("device") = py::none(), py::kw_only(),
                                 py::arg("priority") = 0, py::return_value_policy::take_ownership));
  make_with_new(m.attr("Event"),
                py::cpp_function([](const py::object& device,
                                    bool timing) { return new Event(to_device(device.ptr()), timing); },
                                 py::name("Event"), py::arg("device") = py::none(), py::kw_only(),
                                 py::arg("timing") = false, py::return_value_policy::take_ownership));
  m.def(
      "default_stream",
      [](const py::object& device) { return new PyStream(*to_device(device.ptr()).default_stream); },
      py::arg("device") = py::none(), py::return_value_policy::take_ownership);
  m.def(
      "use_stream",
      [](const py::object& device, const py::object& stream) {
        set_current_stream(to_device(device.ptr()), stream.is_none() ? nullptr : &to_stream("use_stream", stream));
      },
      "Makes a stream this thread's current one; None: the device's default one.");
  m.def("current_stream", current, py::arg("device") = py::none());
}
}  // namespace dovetail::bindings
