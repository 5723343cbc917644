import pickle
from typing import NamedTuple

import numpy as np
import pytest
from numba import float64, int64

from censafe.model.compiled import compiled
from censafe.model.named_arrays import SparseArrays, read_only, tuple_type
from censafe.model.sparse import ExactHistograms


class Pair(NamedTuple):
    first: object
    second: object


@pytest.mark.parametrize("fields", [(float64[::1], int64), (float64[::1], float64[::1])])
def test_the_type_is_that_of_tuples_from_outside_and_of_those_made_in_kernels(fields) -> None:
    of_pair = tuple_type(Pair, *fields)

    @compiled(of_pair(of_pair))
    def turned(pair):
        return Pair(pair.first[::-1].copy(), pair.second)

    second = 1 if fields[1] is int64 else np.ones(1)
    assert turned(Pair(np.array([1.0, 2.0]), second)).first.tolist() == [2.0, 1.0]


def test_fields_are_counted() -> None:
    with pytest.raises(TypeError, match="Pair has 2 fields, not 1"):
        tuple_type(Pair, int64)


def test_views_are_read_only_and_leave_the_array_as_it_is() -> None:
    array = np.arange(6).reshape(2, 3).T
    (view,) = read_only(array)
    assert (view.tolist(), view.flags.c_contiguous, view.flags.writeable) == (array.tolist(), True, False)
    assert array.flags.writeable


def test_the_arrays_of_confidential_histograms_are_neither_shown_nor_pickled() -> None:
    exact = ExactHistograms(
        np.array(["1"]), np.array([0, 1]), np.array([7], np.int32), np.array([4321], np.int32)
    )
    arrays = SparseArrays.of(exact)
    assert repr(arrays) == str(arrays) == "SparseArrays(1 geounits)"
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(arrays)
