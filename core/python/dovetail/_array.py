"""Methods of Array that are written in Python. Importing this module adds them to the type, which is made in C++.

NumPy and everything else that takes time to load is imported by the method that needs it.
"""

from __future__ import annotations

from contextlib import suppress
from operator import index

from dovetail import _core
from dovetail._core import Array
from dovetail._errors import AxisError

_op = _core.op_function
recording_on = _core.recording_on
_METHODS: list[tuple[str, object]] = []
FOREIGN = frozenset(_core.foreign_dtypes)  # dtypes that NumPy has from ml_dtypes
STORED = frozenset(_core.stored_dtypes)  # dtypes with which no op computes
PACKED = _core.packed_dtypes  # those whose elements share bytes, by name, and the name of one that has their values
PART = {"complex64": "float32", "complex128": "float64"}  # the dtype of a complex number's parts
API_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")


def _method(function):
    """Adds the function to Array under its own name."""
    _METHODS.append((function.__name__, function))
    return function


def _property(function):
    _METHODS.append((function.__name__, property(function)))
    return function


def symbolic(n):
    """Whether n is a number of a trace, as a size of a traced array is: it is passed on, and not looked at."""
    return hasattr(type(n), "__dovetail_number__")


def as_size(n):
    """operator.index(n) of what is no number of a trace."""
    return n if symbolic(n) else index(n)


def expect_elements(op, x, cure):
    """Raises TypeError for an array that is being traced: it has no elements yet."""
    if type(x) is not Array:
        from dovetail._tracer import refuse_value

        raise refuse_value(f"{op}(), whose result depends on elements,", cure)


def expect_array(op, x, name="x"):
    """Raises TypeError for what is no Array, in functions that read its shape before any op checks it."""
    if not isinstance(x, Array) and not hasattr(type(x), "__dovetail_op__"):
        raise TypeError(
            f"[{op}] {name}: expected a dovetail array, got {type(x).__name__}: dovetail.asarray() makes an array"
        )


def expect_axis(op, axis, ndim):
    """The axis from 0 on. Raises TypeError for what is no integer, AxisError for one that the array has not."""
    try:
        axis = index(None if isinstance(axis, bool) else axis)
    except TypeError:
        raise TypeError(f"[{op}] axis: expected an integer, got {axis!r}") from None
    if not -ndim <= axis < ndim:
        raise AxisError(f"[{op}] axis {axis} of an array of {ndim} axes: expected {-ndim} to {ndim - 1}")
    return axis % ndim


# ---- shape, dtype, device ----------------------------------------------------------------------------------------


@_method
def reshape(self, *shape):
    """The same elements in another shape: x.reshape(2, 3), x.reshape((2, -1)); one size of -1 is found out.

    Raises ValueError where the number of elements differs.
    """
    return _op("reshape")(self, shape[0] if len(shape) == 1 else shape)


@_method
def astype(self, dtype, /, *, copy=True):
    """The elements in another dtype. Floats are truncated towards zero on the way to integers; bool is x != 0.

    copy=False: the array may share its elements with x where the dtype is the same already.
    """
    if self.dtype == dtype:
        return _op("copy")(self) if copy else self.__copy__()
    return _op("astype")(self, dtype)


@_method
def to_device(self, device, /, *, stream=None):
    """The array on another device, or an array that shares x's elements where that is x's own device.

    stream: a dovetail.Stream of the target device on which the copy runs; None: its current one.
    """
    if stream is None:
        return _core.to_device(self, device)
    if not isinstance(stream, _core.Stream):
        raise TypeError(f"[to_device] stream: expected a dovetail.Stream or None, got {stream!r}")
    if stream.device != device:
        raise ValueError(f"[to_device] stream: expected one of {device}, got one of {stream.device}")
    with stream:
        return _core.to_device(self, device)


@_property
def T(self):
    """The transpose of an array of two axes. Raises ValueError for any other: use mT or permute_dims."""
    if self.ndim != 2:
        raise ValueError(f"[T] expected an array of 2 axes, got shape {self.shape}: use .mT or permute_dims()")
    return _op("matrix_transpose")(self)


@_property
def mT(self):
    """The transpose of each matrix: the last two axes change places."""
    return _op("matrix_transpose")(self)


@_property
def real(self):
    """The real part, as a view: of a real array, the array itself."""
    return _part(self, 0) if is_complex(self) else self.__copy__()


@_property
def imag(self):
    """The imaginary part, as a view: of a real array, zeros."""
    if is_complex(self):
        return _part(self, 1)
    return _op("zeros")(self.shape, dtype=self.dtype, device=self.device)


def _part(x, index):
    return _op("bitcast")(x, PART[x.dtype.name])[..., index]


def is_complex(x):
    return x.dtype.kind == "complex floating"


@_method
def copy(self):
    """A row-major copy in memory of its own. It is seldom needed: writes to an array never change another."""
    return _op("copy")(self)


@_method
def tobytes(self):
    """The elements in row-major order, as bytes."""
    return _core.to_bytes(self)


_METHODS.append(("__bytes__", tobytes))


# ---- reductions, as NumPy's methods take them: x.sum(0); the functions of the same names are documented ----------


def _reduction(name):
    def method(self, /, axis=None, *, keepdims=False):
        return _op(name)(self, axis=axis, keepdims=keepdims)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"dovetail.{name}(x, axis=axis, keepdims=keepdims)."
    return _method(method)


for _name in ("max", "min", "mean", "any", "all", "argmax", "argmin"):
    _reduction(_name)


def _accumulating(name):
    def method(self, /, axis=None, dtype=None, *, keepdims=False):
        return _op(name)(self, axis=axis, dtype=dtype, keepdims=keepdims)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"dovetail.{name}(x, axis=axis, dtype=dtype, keepdims=keepdims)."
    return _method(method)


for _name in ("sum", "prod"):
    _accumulating(_name)


def _spread(name):
    def method(self, /, axis=None, *, correction=0.0, keepdims=False):
        return _op(name)(self, axis=axis, correction=correction, keepdims=keepdims)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"dovetail.{name}(x, axis=axis, correction=correction, keepdims=keepdims)."
    return _method(method)


for _name in ("std", "var"):
    _spread(_name)


# ---- Python ------------------------------------------------------------------------------------------------------


@_method
def __iter__(self):
    if self.ndim == 0:
        raise TypeError("[iter] an array without axes has no elements to iterate over: x.item() is its number")
    return (self[i] for i in range(self.shape[0]))


@_method
def __contains__(self, value):
    return bool(_op("any")(_op("equal")(self, value)))


@_method
def __round__(self, ndigits=None):
    """round(x): without digits the nearest integers as int64, of an array without axes a Python int; with digits
    an array of x's dtype."""
    from dovetail._functions import rounded

    if ndigits is not None:
        return rounded(self, ndigits)
    return round(self.item()) if self.ndim == 0 else _op("astype")(_op("round")(self), "int64")


@_method
def __divmod__(self, other):
    return self // other, self % other


@_method
def __rdivmod__(self, other):
    return other // self, other % self


@_method
def __complex__(self):
    return complex(self.item())


@_method
def tolist(self):
    """The elements as nested lists of Python numbers; of an array without axes, its only element."""
    return to_numpy(self).tolist()


@_method
def __repr__(self):
    from dovetail._printing import array_repr

    return array_repr(self)


@_method
def __str__(self):
    from dovetail._printing import array_str

    return array_str(self)


@_method
def __format__(self, spec):
    if not spec:
        return str(self)
    if self.ndim == 0:
        return format(self.item(), spec)
    raise TypeError(f"an array of shape {self.shape} has no format {spec!r}: format its elements, or str() it")


@_method
def __copy__(self):
    return _core.share(self)


@_method
def __deepcopy__(self, memo):
    return _core.share(self)


@_method
def __reduce_ex__(self, protocol):
    data = _pickle_buffer(self) if protocol >= 5 else _core.to_bytes(self)
    return unpickled, (self.dtype.name, self.shape, data, self.device.name)


def _pickle_buffer(x):
    """The elements for protocol 5: where the host can read the device's memory, that memory, as the pickler's
    buffer_callback may take it; else a copy."""
    from pickle import PickleBuffer

    with suppress(BufferError), recording_on(None):  # a trace does not record how elements are read
        if x.dtype.name in PACKED:
            x = _op("reinterpret")(x, (-1,), "uint8")
        view = _core.elements(_op("bitcast")(x, f"uint{8 * x.dtype.itemsize}") if x.dtype.name in FOREIGN else x)
        if view.c_contiguous:
            return PickleBuffer(view)
    return PickleBuffer(_core.to_bytes(x))


def unpickled(dtype, shape, data, device):
    """An array from what its pickle holds; on the default device, with a warning, where its own is not here."""
    from dovetail import _devices

    try:
        home = _devices.device(device)
    except (ValueError, RuntimeError) as why:
        import warnings

        home = _devices.device(None)
        warnings.warn(f"an array pickled on {device} goes to {home}: {why}", stacklevel=2)
    return _core.from_buffer(data, dtype, shape, home)


def unpickled_op(name):
    """The op of that name, as its pickle holds it. Ops of other packages are registered when those are imported."""
    return _op(name)


# ---- the array API and NumPy -------------------------------------------------------------------------------------


@_method
def __array_namespace__(self, /, *, api_version=None):
    if api_version is not None and api_version not in API_VERSIONS:
        raise ValueError(f"array API version {api_version!r}: expected one of {', '.join(API_VERSIONS)}")
    import dovetail

    return dovetail


def to_numpy(x):
    """A NumPy array of x's elements: a read-only view where the host can read the device's memory, else a copy."""
    import numpy as np

    if x.dtype.name in PACKED:
        return _unpacked(np.frombuffer(_core.to_bytes(x), np.uint8), x.dtype, x.size).reshape(x.shape)
    if x.dtype.name in FOREIGN:
        with recording_on(None):  # a trace does not record how elements are read
            bits = _op("bitcast")(x, f"uint{8 * x.dtype.itemsize}")
        return to_numpy(bits).view(numpy_dtype(x.dtype))
    with suppress(BufferError):  # memory that the host cannot read
        return np.asarray(_core.elements(x))
    return _copied(x)


def packed(x):
    """A NumPy array of a dtype whose elements share bytes, as these bytes: the first element in the lowest bits."""
    import numpy as np

    bits = _core.dtypes[x.dtype.name].bits
    codes = np.ascontiguousarray(x).reshape(-1).view(np.uint8) & (2**bits - 1)
    rows = np.append(codes, np.zeros(-x.size % (8 // bits), np.uint8)).reshape(-1, 8 // bits)
    return np.bitwise_or.reduce(rows << np.arange(0, 8, bits, dtype=np.uint8), axis=1)


def _unpacked(data, dtype, size):
    import numpy as np

    codes = (data[:, None] >> np.arange(0, 8, dtype.bits, dtype=np.uint8) & (2**dtype.bits - 1)).reshape(-1)[:size]
    if "floating" in dtype.kind:
        return codes.view(numpy_dtype(dtype))
    sign = 2 ** (dtype.bits - 1) if dtype.kind == "signed integer" else 0
    return ((codes.astype(np.int8) ^ sign) - sign).astype(numpy_dtype(dtype))


def _copied(x):
    import numpy as np

    out = np.empty(x.shape, x.dtype.name)
    _core.read_into(x, out)
    return out


@_method
def numpy(self):
    """A NumPy array with the same elements, to read and to write: a copy, as numpy.asarray(x) is.

    numpy.asarray(x, copy=False) is a read-only view where the host can read the device's memory.
    bfloat16, floats of 8 bits and what is smaller are dtypes of ml_dtypes, one element in a byte.
    """
    if self.dtype.name in FOREIGN:
        out = to_numpy(self)
        return out if out.flags.writeable else out.copy()
    return _copied(self)


@_method
def __array__(self, dtype=None, copy=None):
    """numpy.asarray(x): a copy, to read and to write; writes to it never change x.

    copy=False: a read-only view; raises ValueError where the host cannot read the device's memory.
    """
    if copy is not False:
        return numpy(self) if dtype is None or self.dtype == dtype else to_numpy(self).astype(dtype)
    out = to_numpy(self)
    if out.flags.writeable or (dtype is not None and out.dtype != dtype):  # writeable: a copy already
        raise ValueError(
            f"[__array__] an array of {self.dtype} on {self.device} takes a copy here: got copy=False, expected "
            "copy=None or True"
        )
    return out


@_method
def __array_ufunc__(self, ufunc, method, *inputs, **options):
    """numpy.sin(x) and the like run on x's device and return an Array."""
    from dovetail import _numpy

    return _numpy.ufunc(ufunc, method, inputs, options)


@_method
def __array_function__(self, function, types, args, kwargs):
    """numpy.sum(x) and the like run on x's device and return an Array; functions without a counterpart raise."""
    from dovetail import _numpy

    return _numpy.function(function, types, args, kwargs)


def numpy_dtype(of):
    """The NumPy dtype of that name; those that NumPy lacks are those of ml_dtypes."""
    import numpy as np

    name = str(of)
    if name in FOREIGN:
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, name))
    return np.dtype(name)


_core.DType.__numpy_dtype__ = property(numpy_dtype)  # the type from which NumPy 2.4 and later make a dtype


for _name, _value in _METHODS:
    setattr(Array, _name, _value)
Array.__module__ = _core.DType.__module__ = "dovetail"
