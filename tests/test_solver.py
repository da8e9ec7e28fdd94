"""Threads of BLAS while something is solved."""

import pytest
import scipy.linalg  # noqa: F401 (has a BLAS of its own)
from threadpoolctl import threadpool_info, threadpool_limits

from onefit.solver import blas_threads


def _threads() -> list[int]:
    return [
        library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"
    ]


@pytest.mark.parametrize("before", [1, 2, 3])
@pytest.mark.parametrize("most", [None, 1, 2])
def test_blas_has_so_many_threads_at_most(before, most):
    with threadpool_limits(before, "blas"):
        there = _threads()  # a machine may have fewer
        with blas_threads(most):
            allowed = most if most is not None else max(there)
            assert _threads() == [min(number, allowed) for number in there]
        assert _threads() == there
