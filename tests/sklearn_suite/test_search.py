"""``sklearn/model_selection/tests/test_search.py``, as it is installed with scikit-learn.

Its tests of the two searches, with onefit's searches and estimators in their places.
"""

import pytest
import sklearn.model_selection

import onefit
from sklearn_suite.substitution import ESTIMATORS, ours_among

pytestmark = pytest.mark.filterwarnings("default::sklearn.exceptions.ConvergenceWarning")

OURS = {
    "GridSearchCV": onefit.GridSearchCV,
    "RandomizedSearchCV": onefit.RandomizedSearchCV,
    **ESTIMATORS,
}

globals().update(
    ours_among("sklearn.model_selection.tests.test_search", sklearn.model_selection, OURS)
)
