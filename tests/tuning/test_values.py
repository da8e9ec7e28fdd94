"""Sums of kernel values, and which decision values are too small."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from onefit import _core
from onefit.kernels import Kernel, make_store
from onefit.tuning.values import _undecided


@pytest.mark.parametrize("n_queries", [1, 3, 4, 37])
@pytest.mark.parametrize("n", [30, 400])
def test_sums_are_those_of_the_terms_in_any_company(n, n_queries):
    random = np.random.default_rng(n)
    X = random.normal(size=(n, 4))
    X[n // 2 :: 3] = X[0]  # equal rows get equal sums
    store = make_store(X, Kernel("rbf", 0.3), 1 << 26)
    rows = [random.permutation(n)[: n // 2].astype(np.int32) for _ in range(5)]
    rows.append(np.concatenate((rows[0], rows[1])))  # a row may be there twice
    coef = [random.normal(size=len(some)) * (random.random(len(some)) < 0.6) for some in rows]
    queries = random.permutation(n)[:n_queries].astype(np.int32)
    found = _core.kernel_sums(store, rows, coef, queries)
    kernel = store.block(queries, np.arange(n, dtype=np.int32)).astype(np.float64)
    for k, (some, factors) in enumerate(zip(rows, coef, strict=True)):
        assert_allclose(found[k], kernel[:, some] @ factors, rtol=0, atol=1e-12)
        assert_array_equal(_core.kernel_sums(store, [some], [factors], queries)[0], found[k])
    everyone = np.arange(n, dtype=np.int32)
    equal = np.flatnonzero((X[0] == X).all(axis=1))
    for k, sums in enumerate(_core.kernel_sums(store, rows, coef, everyone)):
        assert len(set(sums[equal].tolist())) == 1
        assert_array_equal(sums[queries], found[k])


@pytest.mark.parametrize("n_small", [0, 1, 2, 5, 60])
def test_undecided_values_are_those_below_the_tolerance(n_small):
    random = np.random.default_rng(n_small)
    sizes = random.uniform(1e-2, 1, size=200)
    sizes[:n_small] = random.uniform(1e-5, 9e-4, size=n_small)
    rank = int(0.01 * sizes.size)
    needed = np.sort(sizes)[rank]
    assert _undecided(sizes, 1e-3) == (needed if needed < 1e-3 else 0.0)
