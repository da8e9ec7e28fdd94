"""``sklearn/model_selection/tests/test_validation.py``, as it is installed with scikit-learn.

Its tests of the three functions of cross-validation, and of SVC in them.
"""

import pytest
import sklearn.model_selection

import onefit
from sklearn_suite.substitution import ours_among

pytestmark = pytest.mark.filterwarnings("default::sklearn.exceptions.ConvergenceWarning")

OURS = {
    name: getattr(onefit, name)
    for name in ("cross_validate", "cross_val_score", "cross_val_predict", "SVC")
}

globals().update(
    ours_among("sklearn.model_selection.tests.test_validation", sklearn.model_selection, OURS)
)
