"""The estimators among scikit-learn's tools: searches, tags, pictures, its own checks."""

import dataclasses

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_iris
from sklearn.ensemble import BaggingClassifier, BaggingRegressor
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_html_repr, get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from estimators.examples import (
    CLASSIFIERS,
    ESTIMATORS,
    TOL,
    assert_same_values,
    classes,
    every_classifier,
    every_estimator,
    every_regressor,
    numbers,
    of_scikit_learn,
    problem,
)
from onefit import SVC, SVR, NuSVC, NuSVR

# ----------------------------------------------------------------------------------- searches


@every_classifier
@pytest.mark.parametrize("kernel", ["linear", "precomputed"])
def test_cross_validation_cuts_a_precomputed_kernel_both_ways(cls, kernel):
    X, y = load_iris(return_X_y=True)
    X = X @ X.T if kernel == "precomputed" else X
    ours = cross_val_score(cls(kernel=kernel, tol=TOL), X, y)
    theirs = cross_val_score(of_scikit_learn(cls)(kernel=kernel, tol=TOL), X, y)
    assert_array_equal(ours, theirs)


@every_regressor
def test_cross_validation_of_a_regression(cls):
    X, y = numbers()
    expected = cross_val_score(of_scikit_learn(cls)(kernel="linear", tol=TOL), X, y)
    for kernel, rows in (("linear", X), ("precomputed", X @ X.T)):
        assert_allclose(cross_val_score(cls(kernel=kernel, tol=TOL), rows, y), expected, atol=1e-4)


@every_estimator
def test_grid_search_over_a_pipeline(cls):
    X, y = load_iris(return_X_y=True) if is_classifier(cls()) else numbers()
    name = cls.__name__.lower()
    grid = {f"{name}__gamma": ["scale", 0.05, 0.5], f"{name}__tol": [TOL]}
    grid |= {f"{name}__C": [0.1, 1, 10]} if "C" in cls().get_params() else {f"{name}__nu": [0.2]}
    ours, theirs = (
        GridSearchCV(make_pipeline(StandardScaler(), model()), grid, cv=3).fit(X, y)
        for model in (cls, of_scikit_learn(cls))
    )
    assert_allclose(
        ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"], atol=1e-4
    )
    assert ours.best_params_ == theirs.best_params_
    assert_same_values(ours.best_estimator_, theirs.best_estimator_, X)


@every_estimator
def test_score_takes_weights(cls):
    X, y = problem(cls)
    model, weight = cls().fit(X, y), np.linspace(0, 1, len(y))
    expected = (
        np.average(model.predict(X) == y, weights=weight)
        if is_classifier(model)
        else r2_score(y, model.predict(X), sample_weight=weight)
    )
    assert model.score(X, y, weight) == pytest.approx(expected)


@every_classifier
def test_calibration_gives_probabilities(cls):
    X, y = classes(3)
    probabilities = CalibratedClassifierCV(cls(), ensemble=False, cv=3).fit(X, y).predict_proba(X)
    assert probabilities.shape == (60, 3)
    assert_allclose(probabilities.sum(axis=1), 1.0)


@every_estimator
def test_bagging(cls):
    X, y = problem(cls)
    bagging = BaggingClassifier if is_classifier(cls()) else BaggingRegressor
    scores = [
        bagging(model(tol=TOL), n_estimators=5, random_state=0).fit(X, y).score(X, y)
        for model in (cls, of_scikit_learn(cls))
    ]
    assert scores[0] == pytest.approx(scores[1], abs=1e-4)


@every_regressor
def test_meta_regressors(cls):
    X, y = numbers()
    both = MultiOutputRegressor(cls()).fit(X, np.column_stack([y, -y])).predict(X)
    assert_allclose(both[:, 0], cls().fit(X, y).predict(X))
    scaled = TransformedTargetRegressor(cls(), transformer=StandardScaler()).fit(X, 1000 * y)
    assert scaled.score(X, 1000 * y) > 0.5


# --------------------------------------------------------------------------------------- tags


@every_estimator
@pytest.mark.parametrize("kernel", ["rbf", "linear", "precomputed", lambda A, B: A @ B.T])
def test_tags_are_those_of_scikit_learn(cls, kernel):
    ours, theirs = (get_tags(c(kernel=kernel)) for c in (cls, of_scikit_learn(cls)))
    if sklearn.__version__ == "1.6.0":
        theirs.input_tags.sparse = kernel != "precomputed"  # this release forgot it
    assert dataclasses.asdict(ours) == dataclasses.asdict(theirs)
    # By name, so that a field that scikit-learn drops is noticed.
    assert ours.estimator_type == ("classifier" if cls in CLASSIFIERS else "regressor")
    assert ours.input_tags.sparse == (kernel != "precomputed")
    assert ours.input_tags.pairwise == (kernel == "precomputed")
    assert ours.target_tags.required
    assert (ours.classifier_tags is None) != (ours.regressor_tags is None)


@every_estimator
def test_it_is_a_classifier_or_a_regressor(cls):
    assert is_classifier(cls()) == (cls in CLASSIFIERS)
    assert is_regressor(cls()) == (cls not in CLASSIFIERS)


# ----------------------------------------------------------------------------------- pictures


@every_estimator
def test_repr_shows_what_is_not_the_default(cls):
    assert repr(cls()) == f"{cls.__name__}()"
    assert repr(cls(gamma=0.125, n_jobs=2)) == f"{cls.__name__}(gamma=0.125, n_jobs=2)"
    with sklearn.config_context(print_changed_only=False):
        assert "cache_size='auto'" in repr(cls())
    assert repr(cls(gamma=0.125).fit(*problem(cls))) == f"{cls.__name__}(gamma=0.125)"


@every_estimator
def test_html_shows_the_name_the_parameters_and_whether_it_is_fitted(cls):
    model = cls(gamma=0.125)
    for fitted in (False, True):
        html = model._repr_html_()
        assert cls.__name__ in html
        assert "gamma" in html
        assert "0.125" in html
        assert ("<span>Not fitted</span>" in html) != fitted
        assert ("<span>Fitted</span>" in html) == fitted
        model.fit(*problem(cls))


@every_estimator
def test_html_of_a_pipeline(cls):
    pipeline = make_pipeline(StandardScaler(), cls(gamma=0.125))
    for _ in range(2):
        html = estimator_html_repr(pipeline)
        for word in ("Pipeline", "StandardScaler", cls.__name__, "0.125"):
            assert word in html
        pipeline.fit(*problem(cls))


# ------------------------------------------------------------------------ scikit-learn's checks

# Those that scikit-learn declares for its own classes, no others. They compare to the seventh
# digit what is only determined to tol=1e-3, and gamma="scale" counts every row alike, whatever
# its weight.
EQUIVALENCE = {
    "check_sample_weight_equivalence_on_dense_data": "equivalent only up to tol and gamma",
    "check_sample_weight_equivalence_on_sparse_data": "equivalent only up to tol and gamma",
}
EXPECTED_FAILED_CHECKS = {
    SVC: EQUIVALENCE,
    SVR: EQUIVALENCE,
    NuSVR: EQUIVALENCE,
    NuSVC: {
        **EQUIVALENCE,
        "check_class_weight_classifiers": "class_weight has no effect",
        "check_classifiers_one_label_sample_weights": "no nu is possible with one class",
    },
}

CHECKED = [
    *(cls() for cls in ESTIMATORS),
    *(cls(kernel="linear", n_jobs=2) for cls in ESTIMATORS),
    NuSVC(nu=0.2),
    *(cls(kernel="precomputed") for cls in (SVC, SVR, NuSVR)),
    NuSVC(kernel="precomputed", nu=0.2),
    SVC(kernel="poly"),
    NuSVR(kernel="poly", degree=2, coef0=1.0),
    SVR(kernel="sigmoid", gamma=0.01),
    NuSVR(kernel="sigmoid", gamma=0.01),
]


# The data of some checks leave no margin between the classes, or have a polynomial kernel whose
# values are beyond rounding.
@pytest.mark.filterwarnings(
    "ignore:A pair of classes has no margin", "ignore:Solver stopped at a KKT gap"
)
@parametrize_with_checks(
    CHECKED, expected_failed_checks=lambda model: EXPECTED_FAILED_CHECKS[type(model)]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@every_estimator
def test_expected_failures_are_those_of_scikit_learn(cls):
    generator = pytest.importorskip("sklearn.utils._test_common.instance_generator")
    theirs = generator.PER_ESTIMATOR_XFAIL_CHECKS[of_scikit_learn(cls)]
    assert set(EXPECTED_FAILED_CHECKS[cls]) <= set(theirs)


@every_estimator
def test_clone_after_fit_is_not_fitted(cls):
    model = cls(gamma=0.125).fit(*problem(cls))
    assert not hasattr(clone(model), "support_")
