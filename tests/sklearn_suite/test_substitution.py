"""That the tests of scikit-learn are found, and meet onefit's objects instead of its own."""

import inspect

import pytest
import sklearn.svm
from sklearn.datasets import make_classification

import onefit
from sklearn_suite import test_search, test_sparse, test_svm, test_validation
from sklearn_suite.exceptions import EXCEPTIONS
from sklearn_suite.substitution import ESTIMATORS


def found_in(module):
    return {name: test for name, test in vars(module).items() if name.startswith("test_")}


@pytest.mark.parametrize(
    ("module", "least"),
    [(test_svm, 30), (test_sparse, 10), (test_validation, 30), (test_search, 50)],
)
def test_tests_are_found(module, least):
    assert len(found_in(module)) >= least


@pytest.mark.parametrize("module", [test_svm, test_sparse])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_they_meet_our_estimators(module, name):
    for test in found_in(module).values():
        assert getattr(inspect.unwrap(test).__globals__["svm"], name) is ESTIMATORS[name]
    assert issubclass(ESTIMATORS[name], getattr(onefit, name))
    assert getattr(sklearn.svm, name).__module__.startswith("sklearn.")


def test_they_meet_our_functions():
    for test in found_in(test_validation).values():
        names = inspect.unwrap(test).__globals__
        for name in ("cross_validate", "cross_val_score", "cross_val_predict"):
            assert names[name] is getattr(onefit, name)


def test_they_meet_our_searches():
    for test in found_in(test_search).values():
        names = inspect.unwrap(test).__globals__
        for name in ("GridSearchCV", "RandomizedSearchCV"):
            assert names[name] is getattr(onefit, name)
        assert names["SVC"] is ESTIMATORS["SVC"]


def test_exceptions_are_few():
    modules = (test_svm, test_sparse, test_validation, test_search)
    found = {name for module in modules for name in found_in(module)}
    excepted = {name.split("[")[0] for name in EXCEPTIONS} & found
    assert 0 < len(excepted) <= 14


@pytest.mark.parametrize("name", ["SVC", "NuSVC", "SVR", "NuSVR"])
def test_searches_solve_their_cells_here(name):
    """What is left to scikit-learn would test scikit-learn."""
    X, y = make_classification(60, random_state=0)
    grid = {"gamma": [0.01, 0.1], "kernel": ["rbf", "linear"]}
    search = onefit.GridSearchCV(ESTIMATORS[name](), grid, cv=3).fit(X, y)
    assert (search.ledger_.cells, search.ledger_.by_sklearn) == (12, 0)
