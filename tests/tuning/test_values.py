"""Decision values of many models at once, beside those of one after another."""

import numpy as np
import pytest

from onefit import voting
from onefit.tuning.values import _pair_values, _undecided


@pytest.mark.parametrize("sizes", [[3, 1, 4], [2, 0, 5, 1], [4, 4, 4, 4, 4, 4, 4]])
@pytest.mark.parametrize("n_models", [1, 8])
def test_values_of_many_models(sizes, n_models):
    random = np.random.default_rng(0)
    n_classes, n_support = len(sizes), sum(sizes)
    kernel = random.normal(size=(11, n_support))
    coef = random.normal(size=(n_models, n_classes - 1, n_support))
    intercepts = random.normal(size=(n_models, n_classes * (n_classes - 1) // 2))
    ends = [0, *np.cumsum(sizes).tolist()]
    found = _pair_values(kernel, coef, ends, intercepts)
    for k in range(n_models):
        one = voting.pair_values(kernel, coef[k], np.array(sizes, np.int32), intercepts[k])
        np.testing.assert_allclose(found[k], one, rtol=0, atol=1e-12)


@pytest.mark.parametrize("n_small", [0, 1, 2, 5, 60])
def test_undecided_values_are_those_below_the_tolerance(n_small):
    random = np.random.default_rng(n_small)
    sizes = random.uniform(1e-2, 1, size=200)
    sizes[:n_small] = random.uniform(1e-5, 9e-4, size=n_small)
    rank = int(0.01 * sizes.size)
    needed = np.sort(sizes)[rank]
    assert _undecided(sizes, 1e-3) == (needed if needed < 1e-3 else 0.0)
