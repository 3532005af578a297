"""An array of a program."""

from __future__ import annotations

from typing import Any

import numpy as np
from dovetail.schema.dtypes import DType

from .dtype_rules import cast


class Value:
    """`data` has the dtype, or is float64 where a float is not rounded yet."""

    __slots__ = ("data", "dtype")

    def __init__(self, data: Any, dtype: DType):
        self.data, self.dtype = np.asarray(data), dtype

    def rounded(self) -> np.ndarray:
        return cast(self.data, self.dtype)
