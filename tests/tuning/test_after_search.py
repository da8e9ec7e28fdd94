"""What a finished search offers: out-of-fold values, calibration, simpler choices, warnings."""

import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification, make_regression
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from onefit import SVC, SVR, GridSearchCV, RandomizedSearchCV
from onefit.tuning import EdgeOfGridWarning

GRID = {"C": [0.1, 1.0, 10.0, 1000.0], "gamma": [0.001, 0.05, 0.3, 5.0]}


def classes(n_classes=2, n=90):
    return make_classification(
        n, 5, n_informative=4, n_redundant=0, n_classes=n_classes, class_sep=0.8, random_state=1
    )


@pytest.mark.filterwarnings("ignore::onefit.tuning.EdgeOfGridWarning")
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("shape", ["ovr", "ovo"])
def test_out_of_fold_values_are_those_of_cross_val_predict(n_classes, shape):
    X, y = classes(n_classes)
    machine = SVC(tol=1e-7, decision_function_shape=shape)
    search = GridSearchCV(machine, GRID, cv=4).fit(X, y)
    for index in (None, 0, 7):
        k = search.best_index_ if index is None else index
        best = clone(machine).set_params(**search.cv_results_["params"][k])
        expected = cross_val_predict(best, X, y, cv=4, method="decision_function")
        assert_allclose(search.out_of_fold(index), expected, atol=1e-4)


def test_out_of_fold_values_of_regression_and_pipelines(tmp_path):
    X, y = make_regression(60, 4, noise=5.0, random_state=0)
    y = y / y.std()
    pipeline = make_pipeline(StandardScaler(), SVR(tol=1e-7))
    search = GridSearchCV(pipeline, {"svr__C": [1.0, 10.0]}, checkpoint=tmp_path / "s.db")
    search.fit(X, y)
    expected = cross_val_predict(search.best_estimator_, X, y)
    assert_allclose(search.out_of_fold(), expected, atol=1e-4)
    again = clone(search).fit(X, y)
    assert again.ledger_.resumed == 10
    assert_array_equal(again.out_of_fold(), search.out_of_fold())


def test_out_of_fold_values_that_there_are_not():
    X, y = classes()
    several = GridSearchCV(SVC(), {"C": [1.0]}, cv=ShuffleSplit(4, random_state=0)).fit(X, y)
    with pytest.raises(ValueError, match="several folds"):
        several.out_of_fold()
    one = GridSearchCV(SVC(), {"C": [1.0]}, cv=ShuffleSplit(1, random_state=0)).fit(X, y)
    assert np.isnan(one.out_of_fold()).sum() == 81
    with pytest.raises(ValueError, match="no out-of-fold value"):
        one.calibrated()
    other = GridSearchCV(LogisticRegression(), {"C": [1.0]}).fit(X, y)
    with pytest.raises(ValueError, match="cross_val_predict"):
        other.out_of_fold()


@pytest.mark.filterwarnings("ignore::onefit.tuning.EdgeOfGridWarning")
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_calibration_is_that_of_scikit_learn(n_classes, method):
    X, y = classes(n_classes, 150)
    y = np.array(["no", "yes", "perhaps"])[y]
    cv = StratifiedKFold(4)
    search = GridSearchCV(SVC(tol=1e-7), GRID, cv=cv).fit(X, y)
    calibrated = search.calibrated(method)
    expected = CalibratedClassifierCV(
        search.best_estimator_, method=method, cv=cv, ensemble=False
    ).fit(X, y)
    assert_allclose(calibrated.predict_proba(X), expected.predict_proba(X), atol=2e-3)
    assert_array_equal(calibrated.classes_, expected.classes_)
    assert calibrated.n_features_in_ == 5
    copy = pickle.loads(pickle.dumps(calibrated))
    assert_array_equal(copy.predict(X), calibrated.predict(X))


def test_candidates_that_there_are_not():
    X, y = classes()
    search = GridSearchCV(SVC(), {"C": [1.0, 2.0]})
    for method in (search.out_of_fold, search.calibrated):
        with pytest.raises(NotFittedError):
            method()
    search.fit(X, y)
    for index in (2, -1, 0.5, "best"):
        with pytest.raises(ValueError, match=rf"from 0 to 1; got {index!r}"):
            search.out_of_fold(index)
    assert_array_equal(search.out_of_fold(np.int64(1)), search.out_of_fold(1))
    search.set_params(scoring=["accuracy", "f1"], refit=False).fit(X, y)
    with pytest.raises(ValueError, match="no candidate is the best"):
        search.out_of_fold()
    assert search.out_of_fold(0).shape == y.shape
    with pytest.raises(ValueError, match="refit=False"):
        search.calibrated()


def test_only_classifiers_are_calibrated():
    X, y = make_regression(40, 3, random_state=0)
    search = GridSearchCV(SVR(), {"C": [1.0]}).fit(X, y)
    with pytest.raises(ValueError, match="regressor"):
        search.calibrated()


@pytest.mark.filterwarnings("ignore::onefit.tuning.EdgeOfGridWarning")
def test_the_one_standard_error_choice():
    X, y = classes(n=120)
    search = GridSearchCV(SVC(), GRID, cv=5).fit(X, y)
    results = search.cv_results_
    folds = np.array([results[f"split{k}_test_score"] for k in range(5)])
    best = folds[:, search.best_index_]
    least = best.mean() - best.std(ddof=1) / np.sqrt(5)
    good = [k for k in range(16) if folds[:, k].mean() >= least]
    smallest = min(good, key=lambda k: tuple(results["params"][k][name] for name in ("C", "gamma")))
    assert search.best_index_1se_ == smallest
    assert search.best_params_1se_ == results["params"][smallest]
    assert search.best_params_1se_["C"] <= search.best_params_["C"]


def test_edges_of_the_grid():
    X, y = classes()
    with pytest.warns(EdgeOfGridWarning, match=r"best C=0.003 is the largest of the grid: larger"):
        GridSearchCV(SVC(gamma=0.1), {"C": [0.001, 0.002, 0.003]}, scoring=_grows_with_C).fit(X, y)
    with pytest.warns(EdgeOfGridWarning, match=r"best svc__gamma=5 is the smallest"):
        GridSearchCV(
            make_pipeline(SVC()),
            {"svc__gamma": [20.0, 5.0, 10.0]},
            scoring=lambda pipeline, X, y: -pipeline[-1].gamma,
        ).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", EdgeOfGridWarning)
        # Inside; a choice of two; as good inside; another kind of parameter; a random search.
        GridSearchCV(SVC(), {"C": [1, 2, 3]}, scoring=lambda e, X, y: -abs(e.C - 2)).fit(X, y)
        GridSearchCV(SVC(), {"C": [1, 2]}, scoring=_grows_with_C).fit(X, y)
        GridSearchCV(SVC(), {"C": [1, 2, 3]}, scoring=lambda e, X, y: min(e.C, 2)).fit(X, y)
        GridSearchCV(SVC(), {"kernel": ["rbf", "poly", "linear"]}).fit(X, y)
        RandomizedSearchCV(SVC(), {"C": [1, 2, 3]}, n_iter=3, scoring=_grows_with_C).fit(X, y)


def _grows_with_C(estimator, X, y):  # noqa: N802
    return estimator.C


@pytest.mark.filterwarnings("ignore::onefit.tuning.EdgeOfGridWarning")
def test_pickles():
    X, y = classes()
    search = GridSearchCV(SVC(), GRID, cv=KFold(3)).fit(X, y)
    copy = pickle.loads(pickle.dumps(search))
    assert_array_equal(copy.predict(X), search.predict(X))
    assert_array_equal(copy.out_of_fold(), search.out_of_fold())
    assert copy.ledger_ == search.ledger_
    assert copy.get_params().keys() == search.get_params().keys()
