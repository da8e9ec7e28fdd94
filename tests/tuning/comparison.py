"""The same search by scikit-learn, as the oracle of every test here."""

import numpy as np
import sklearn.model_selection
import sklearn.svm
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.pipeline import Pipeline

import onefit

TOL = 1e-7  # tight: two right answers are then the same


def theirs(estimator):
    """scikit-learn's estimator with the same parameters."""
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        return Pipeline([*estimator.steps[:-1], (name, theirs(last))])
    parameters = estimator.get_params(deep=False)
    for name in ("n_jobs", "probability"):
        parameters.pop(name, None)
    if parameters["cache_size"] == "auto" or parameters["cache_size"] < 1:
        parameters["cache_size"] = 200
    return getattr(sklearn.svm, type(estimator).__name__)(**parameters)


def both(estimator, grid, X, y, fit_params=None, n_jobs=None, ours=None, **options):
    """The same search twice: ours, and scikit-learn's."""
    ours = onefit.GridSearchCV(estimator, grid, n_jobs=n_jobs, **(ours or {}), **options)
    other = sklearn.model_selection.GridSearchCV(theirs(estimator), grid, **options)
    fit_params = fit_params or {}
    return ours.fit(X, y, **fit_params), other.fit(X, y, **fit_params)


def check_same_search(ours, other, atol=1e-5):
    """The same keys, shapes and scores; the same choice."""
    assert list(ours.cv_results_) == list(other.cv_results_)
    for key, expected in other.cv_results_.items():
        found = ours.cv_results_[key]
        if key == "params":
            assert found == expected
            continue
        assert type(found) is type(expected)
        assert found.shape == expected.shape
        assert found.dtype == expected.dtype
        if key.startswith("param_"):
            assert_array_equal(found, expected)
        elif "_time" in key:
            assert (found >= 0).all()
        elif not key.startswith("rank_"):
            assert_allclose(found, expected, atol=atol, err_msg=key)
    for name in ("best_index_", "best_params_", "n_splits_", "multimetric_"):
        assert hasattr(ours, name) == hasattr(other, name)
        if hasattr(other, name):
            assert getattr(ours, name) == getattr(other, name)


def solved_here(search):
    """How many cells were solved together, of how many."""
    n_cells = len(search.cv_results_["params"]) * search.n_splits_
    return search.ledger_.cells, n_cells


def check_all_shared(search):
    cells, n_cells = solved_here(search)
    assert cells == n_cells
    assert search.ledger_.by_sklearn == 0


def rows_near(values, tol):
    return np.abs(values) < tol
