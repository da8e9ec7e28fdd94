"""What a fitted estimator has: parameters, attributes, decisions and their signs."""

import inspect

import naive
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import svm
from sklearn.base import is_classifier
from sklearn.datasets import make_classification

from estimators.examples import (
    ESTIMATORS,
    TOL,
    TOY_X,
    TOY_Y,
    as_dense,
    assert_same_values,
    classes,
    dense_and_sparse,
    every_classifier,
    every_estimator,
    numbers,
    of_scikit_learn,
    problem,
    values,
)
from onefit import SVC, SVR, NuSVC, NuSVR

# ------------------------------------------------------------------------------- constructor


@every_estimator
def test_parameters_are_those_of_scikit_learn_and_n_jobs(cls):
    ours = inspect.signature(cls).parameters
    theirs = inspect.signature(of_scikit_learn(cls)).parameters
    assert list(ours) == [*theirs, "n_jobs"]
    assert {parameter.kind for parameter in ours.values()} == {inspect.Parameter.KEYWORD_ONLY}
    expected = {name: parameter.default for name, parameter in theirs.items()}
    expected |= {"cache_size": "auto", "n_jobs": None}
    if "probability" in expected:
        expected["probability"] = "deprecated"  # False before scikit-learn 1.8
    assert {name: parameter.default for name, parameter in ours.items()} == expected


@every_estimator
@pytest.mark.parametrize("method", ["fit", "predict", "score"])
def test_methods_take_the_arguments_of_scikit_learn(cls, method):
    ours, theirs = (getattr(c, method) for c in (cls, of_scikit_learn(cls)))
    ours, theirs = inspect.signature(ours).parameters, inspect.signature(theirs).parameters
    assert list(ours) == list(theirs)
    assert [p.default for p in ours.values()] == [p.default for p in theirs.values()]


@every_classifier
@pytest.mark.parametrize("probability", [False, "deprecated"])
def test_probability_may_be_declined(cls, probability):
    model = cls(probability=probability).fit(TOY_X, TOY_Y)
    assert not hasattr(model, "predict_proba")
    assert not hasattr(model, "predict_log_proba")


@every_estimator
def test_fit_returns_the_estimator_and_leaves_parameters_alone(cls):
    model = cls(gamma="scale", tol=2e-3, cache_size=100)
    before = model.get_params()
    assert model.fit(TOY_X, TOY_Y) is model
    assert model.get_params() == before


# ------------------------------------------------------------------------- fitted attributes

KERNELS = [
    ("linear", np.asarray),
    ("linear", sp.csr_array),
    ("linear", sp.csr_matrix),
    ("rbf", np.asarray),
    ("rbf", sp.csr_array),
    ("precomputed", np.asarray),
    (naive.linear_kernel, np.asarray),
]


def form(value, n_support):
    """Type, shape and dtype; the number of support vectors, not unique, is written as a word."""
    if not hasattr(value, "shape"):
        return type(value)
    shape = tuple("n_support" if extent == n_support else extent for extent in value.shape)
    return type(value), shape, value.dtype.kind, value.dtype.itemsize


def check_attributes(cls, kernel, X, y, names, **params):
    ours = cls(kernel=kernel, **params).fit(X, y)
    theirs = of_scikit_learn(cls)(kernel=kernel, **params).fit(X, y)
    names = [*names, "support_", "support_vectors_", "n_support_", "dual_coef_", "intercept_"]
    names += ["n_iter_", "fit_status_", "shape_fit_"]
    names += ["coef_"] if kernel == "linear" else []
    for name in names:
        expected = form(getattr(theirs, name), len(theirs.support_))
        assert form(getattr(ours, name), len(ours.support_)) == expected, name
    assert ours.fit_status_ == theirs.fit_status_ == 0
    assert ours.shape_fit_ == theirs.shape_fit_
    assert getattr(ours, "n_features_in_", None) == getattr(theirs, "n_features_in_", None)
    # Whatever else scikit-learn has; what is about probabilities only is left out.
    public = {name for name in vars(theirs) if name.endswith("_") and not name.startswith("_")}
    assert public <= set(vars(ours)) | {"probA_", "probB_"}
    return ours, theirs


@every_classifier
@pytest.mark.parametrize("n_classes", [2, 3, 4])
@pytest.mark.parametrize(("kernel", "layout"), KERNELS)
def test_attributes_of_classifiers_have_the_form_of_scikit_learn(cls, kernel, layout, n_classes):
    X, y = classes(n_classes)
    X = X @ X.T if kernel == "precomputed" else layout(X)
    names = ["classes_", "class_weight_"]
    ours, theirs = check_attributes(cls, kernel, X, y, names, class_weight="balanced")
    assert_array_equal(ours.classes_, theirs.classes_)
    assert_allclose(ours.class_weight_, theirs.class_weight_, rtol=1e-12)


@pytest.mark.parametrize("cls", [SVR, NuSVR])
@pytest.mark.parametrize(("kernel", "layout"), KERNELS)
def test_attributes_of_regressors_have_the_form_of_scikit_learn(cls, kernel, layout):
    X, y = numbers()
    X = X @ X.T if kernel == "precomputed" else layout(X)
    ours, _ = check_attributes(cls, kernel, X, y, [])
    assert type(ours.n_iter_) is int
    assert ours.n_iter_ > 0
    assert_array_equal(ours.n_support_, [len(ours.support_)])
    assert ours.n_support_.dtype == np.int32
    assert not hasattr(ours, "classes_")
    assert not hasattr(ours, "decision_function")


@pytest.mark.parametrize("cls", [SVC, NuSVC])
def test_signs_of_a_known_answer(cls):
    # C is large enough, or nu small enough, for the two rows that are nearest to each other.
    params = {"nu": 0.3} if cls is NuSVC else {}
    model = cls(kernel="linear", tol=TOL, **params).fit(TOY_X, TOY_Y)
    assert_array_equal(model.support_, [1, 3])
    assert_array_equal(model.support_vectors_, TOY_X[[1, 3]])
    assert_array_equal(model.n_support_, [1, 1])
    assert_allclose(model.dual_coef_, [[-0.25, 0.25]], rtol=1e-6)
    assert_allclose(model.intercept_, [0.0], atol=1e-6)
    assert_allclose(model.coef_, [[0.5, 0.5]], rtol=1e-6)
    assert_allclose(model.decision_function([[1, 1], [-3, -3]]), [1, -3], rtol=1e-6)
    assert_array_equal(model.predict([[1, 1], [-3, -3]]), [2, 1])


def test_the_known_answer_of_a_regression():
    # Two points, a tube of 0.5: the flattest line through it goes from 0.5 to 2.5.
    model = SVR(kernel="linear", C=100.0, epsilon=0.5, tol=TOL).fit([[0.0], [2.0]], [0.0, 3.0])
    assert_array_equal(model.support_, [0, 1])
    assert_allclose(model.coef_, [[1.0]], rtol=1e-6)
    assert_allclose(model.intercept_, [0.5], rtol=1e-6)
    assert_allclose(model.dual_coef_, [[-0.5, 0.5]], rtol=1e-6)
    assert_allclose(model.predict([[0.0], [2.0], [4.0]]), [0.5, 2.5, 4.5], rtol=1e-6)


@every_classifier
@pytest.mark.parametrize("n_classes", [2, 3])
@dense_and_sparse
def test_support_vectors_are_rows_grouped_by_class(cls, n_classes, layout):
    X, y = classes(n_classes)
    weight = np.where(np.arange(len(y)) % 4 == 0, 0.0, 1.0)  # numbers must count these rows too
    model = cls().fit(layout(X), y, weight)
    assert_array_equal(as_dense(model.support_vectors_), X[model.support_])
    owner = np.repeat(model.classes_, model.n_support_)
    assert_array_equal(y[model.support_], owner)
    for label in model.classes_:
        assert (np.diff(model.support_[owner == label]) > 0).all()
    assert (weight[model.support_] > 0).all()
    assert (as_dense(model.dual_coef_) != 0).any(axis=0).all()


@pytest.mark.parametrize("cls", [SVR, NuSVR])
@dense_and_sparse
def test_support_vectors_of_a_regression_are_rows_in_order(cls, layout):
    X, y = numbers()
    weight = np.where(np.arange(len(y)) % 4 == 0, 0.0, 1.0)
    model = cls().fit(layout(X), y, weight)
    assert_array_equal(as_dense(model.support_vectors_), X[model.support_])
    assert (np.diff(model.support_) > 0).all()
    assert (weight[model.support_] > 0).all()
    assert (as_dense(model.dual_coef_) != 0).all()
    # Every coefficient is within ±C, and they sum to 0.
    assert np.abs(as_dense(model.dual_coef_)).max() <= 1.0
    assert as_dense(model.dual_coef_).sum() == pytest.approx(0, abs=1e-9)


@every_estimator
@dense_and_sparse
def test_coef_gives_the_values(cls, layout):
    X, y = problem(cls)
    model = cls(kernel="linear").fit(layout(X), y)
    if is_classifier(model):
        model.set_params(decision_function_shape="ovo")
    found = X @ as_dense(model.coef_).T + model.intercept_
    assert_allclose(np.squeeze(found), values(model, layout(X)), rtol=1e-6, atol=1e-6)
    frozen = model.coef_.data if sp.issparse(model.coef_) else model.coef_
    with pytest.raises(ValueError, match="read-only"):
        frozen[:] = 0


@every_estimator
@pytest.mark.parametrize("kernel", ["rbf", "poly", "sigmoid", "precomputed", naive.linear_kernel])
def test_coef_is_for_the_linear_kernel_only(cls, kernel):
    X = TOY_X @ TOY_X.T if kernel == "precomputed" else TOY_X
    model = cls(kernel=kernel).fit(X, TOY_Y)
    with pytest.raises(AttributeError, match="linear"):
        _ = model.coef_


@every_estimator
@pytest.mark.parametrize("name", ["coef_", "n_support_", "support_", "n_iter_", "fit_status_"])
def test_fitted_attributes_do_not_exist_before_fit(cls, name):
    assert not hasattr(cls(kernel="linear"), name)


# --------------------------------------------------------- what nu stands for, in C or epsilon


@pytest.mark.parametrize("nu", [0.1, 0.3, 0.6])
@pytest.mark.parametrize("weighted", [False, True])
@dense_and_sparse
def test_nu_svc_is_the_c_svc_of_its_penalty(nu, weighted, layout):
    X, y = classes(2)
    weight = np.linspace(0.5, 2, len(y)) if weighted else None
    by_nu = NuSVC(nu=nu, gamma=0.5, tol=1e-9).fit(layout(X), y, weight)
    assert by_nu.C_.shape == by_nu.rho_.shape == (1,)
    assert_array_equal(by_nu.C_, 1 / by_nu.rho_)
    by_c = SVC(C=by_nu.C_[0], gamma=0.5, tol=TOL).fit(layout(X), y, weight)
    assert_same_values(by_nu, by_c, layout(X))
    bounds = by_nu.C_[0] * (weight[by_nu.support_] if weighted else 1.0)
    assert (np.abs(as_dense(by_nu.dual_coef_)[0]) <= bounds * (1 + 1e-12)).all()


def test_nu_svc_has_a_penalty_for_each_pair():
    X, y = classes(4)
    model = NuSVC(nu=0.3, gamma=0.5, tol=1e-9, decision_function_shape="ovo").fit(X, y)
    assert model.C_.shape == model.rho_.shape == (6,)
    pairs = [(i, j) for i in range(4) for j in range(i + 1, 4)]
    for k, (i, j) in enumerate(pairs):
        rows = (y == i) | (y == j)
        one = SVC(C=model.C_[k], gamma=0.5, tol=TOL).fit(X[rows], y[rows])
        # With two classes the sign is that of the second.
        assert_allclose(
            -model.decision_function(X)[:, k], one.decision_function(X), atol=2e-5, rtol=0
        )


@pytest.mark.parametrize("nu", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("weighted", [False, True])
@dense_and_sparse
def test_nu_svr_is_the_epsilon_svr_of_its_width(nu, weighted, layout):
    X, y = numbers()
    weight = np.linspace(0.5, 2, len(y)) if weighted else None
    by_nu = NuSVR(nu=nu, C=3.0, gamma=0.5, tol=TOL).fit(layout(X), y, weight)
    assert type(by_nu.epsilon_) is float
    assert by_nu.epsilon_ >= 0
    by_epsilon = SVR(C=3.0, epsilon=by_nu.epsilon_, gamma=0.5, tol=TOL)
    assert_same_values(by_nu, by_epsilon.fit(layout(X), y, weight), layout(X))


@pytest.mark.parametrize("nu", [0.1, 0.4])
def test_nu_is_a_share_of_the_rows(nu):
    X, y = numbers(n=200)
    model = NuSVR(nu=nu, tol=TOL).fit(X, y)
    outside = np.abs(model.predict(X) - y) > model.epsilon_ + 1e-4
    assert outside.mean() <= nu <= len(model.support_) / 200
    X, y = classes(2, n=200)
    model = NuSVC(nu=nu, tol=TOL).fit(X, y)
    inside = np.where(y == 1, 1, -1) * model.decision_function(X) < 1 - 1e-4
    assert inside.mean() <= nu <= len(model.support_) / 200


# ---------------------------------------------------------------------- decisions and ties


@every_classifier
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_shapes_of_decision_functions(cls, n_classes):
    X, y = make_classification(
        n_samples=80, n_features=8, n_informative=8, n_redundant=0, n_classes=n_classes,
        n_clusters_per_class=1, random_state=0,
    )  # fmt: skip
    n_pairs = n_classes * (n_classes - 1) // 2
    ovo = cls(decision_function_shape="ovo").fit(X, y).decision_function(X)
    ovr = cls(decision_function_shape="ovr").fit(X, y).decision_function(X)
    assert ovo.shape == ((80,) if n_classes == 2 else (80, n_pairs))
    assert ovr.shape == ((80,) if n_classes == 2 else (80, n_classes))


@every_classifier
def test_break_ties_takes_the_largest_decision_value(cls):
    X, y = classes(3)
    Z = np.random.default_rng(0).standard_normal((2000, 5))
    model = cls(kernel="linear").fit(X, y)
    found = model.decision_function(Z)
    # One vote for each class, and less than half a vote by decision values.
    tied = (np.abs(found - 1) < 0.5).all(axis=1)
    assert tied.any()
    assert (model.predict(Z)[tied] == 0).all()  # LIBSVM: the lowest class
    model.set_params(break_ties=True)
    assert_array_equal(model.predict(Z), found.argmax(axis=1))
    assert (model.predict(Z)[tied] != 0).any()


@every_classifier
def test_break_ties_needs_one_versus_rest(cls):
    model = cls(break_ties=True, decision_function_shape="ovo").fit(TOY_X, TOY_Y)
    with pytest.raises(ValueError, match="break_ties"):
        model.predict(TOY_X)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_decision_value_of_zero_goes_to_the_second_class_of_the_pair(n_classes):
    # All rows are the same, hence all decision values are zero: LIBSVM's rule decides alone.
    X, y = np.ones((6, 2)), np.arange(6) % n_classes
    ours = SVC(decision_function_shape="ovo").fit(X, y)
    theirs = svm.SVC().fit(X, y)
    assert not ours.decision_function(X).any()
    assert_array_equal(ours.predict(X), theirs.predict(X))


def test_there_are_four_estimators():
    assert {cls.__name__ for cls in ESTIMATORS} == {"SVC", "SVR", "NuSVC", "NuSVR"}
    for cls in ESTIMATORS:
        assert "onefit" in cls.__module__
