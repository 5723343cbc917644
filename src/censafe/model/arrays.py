"""Names of array types that travel between modules."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Ordinals = NDArray[np.int64]
"""Numbers of rows or cells, counted from 0."""
Flags = NDArray[np.bool_]
