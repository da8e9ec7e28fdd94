"""Values of classes from those of pairs are scikit-learn's, to the bit."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.utils.multiclass import _ovr_decision_function

from onefit.voting import class_values


@pytest.mark.parametrize("n_classes", [3, 4, 11])
def test_values_of_classes(n_classes):
    rng = np.random.default_rng(n_classes)
    values = rng.normal(scale=100.0, size=(200, n_classes * (n_classes - 1) // 2))
    values[rng.random(values.shape) < 0.2] = 0.0
    values[rng.random(values.shape) < 0.2] = -0.0
    values[0, 0] = np.inf
    for given in (values, np.asfortranarray(values), values[::3]):
        expected = _ovr_decision_function(given < 0, -given, n_classes)
        assert_array_equal(class_values(given, n_classes), expected)
