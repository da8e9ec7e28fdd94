"""What a fitted ``onefit.SVC`` has: parameters, attributes, decisions and their signs."""

import inspect

import naive
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import svm
from sklearn.datasets import make_classification

from estimators.examples import TOY_X, TOY_Y, as_dense, classes
from onefit import SVC

# ------------------------------------------------------------------------------- constructor


def test_parameters_are_those_of_scikit_learn_and_n_jobs():
    ours = inspect.signature(SVC).parameters
    theirs = inspect.signature(svm.SVC).parameters
    assert list(ours) == [*theirs, "n_jobs"]
    assert {parameter.kind for parameter in ours.values()} == {inspect.Parameter.KEYWORD_ONLY}
    expected = {name: parameter.default for name, parameter in theirs.items()}
    expected |= {"cache_size": "auto", "n_jobs": None}
    assert {name: parameter.default for name, parameter in ours.items()} == expected


@pytest.mark.parametrize("probability", [False, "deprecated"])
def test_probability_may_be_declined(probability):
    model = SVC(probability=probability).fit(TOY_X, TOY_Y)
    assert not hasattr(model, "predict_proba")
    assert not hasattr(model, "predict_log_proba")


def test_fit_returns_the_estimator_and_leaves_parameters_alone():
    model = SVC(gamma="scale", class_weight="balanced", C=2)
    before = model.get_params()
    assert model.fit(TOY_X, TOY_Y) is model
    assert model.get_params() == before


# ------------------------------------------------------------------------- fitted attributes


def test_signs_of_a_known_answer():
    model = SVC(kernel="linear").fit(TOY_X, TOY_Y)
    assert_array_equal(model.support_, [1, 3])
    assert_array_equal(model.support_vectors_, TOY_X[[1, 3]])
    assert_array_equal(model.n_support_, [1, 1])
    assert_allclose(model.dual_coef_, [[-0.25, 0.25]], rtol=1e-6)
    assert_allclose(model.intercept_, [0.0], atol=1e-6)
    assert_allclose(model.coef_, [[0.5, 0.5]], rtol=1e-6)
    assert_allclose(model.decision_function([[1, 1], [-3, -3]]), [1, -3], rtol=1e-6)
    assert_array_equal(model.predict([[1, 1], [-3, -3]]), [2, 1])


@pytest.mark.parametrize("n_classes", [2, 3, 4])
@pytest.mark.parametrize(
    ("kernel", "layout"),
    [
        ("linear", np.asarray),
        ("linear", sp.csr_array),
        ("rbf", np.asarray),
        ("rbf", sp.csr_array),
        ("precomputed", np.asarray),
        (naive.linear_kernel, np.asarray),
    ],
)
def test_attributes_have_the_form_of_scikit_learn(kernel, layout, n_classes):
    X, y = classes(n_classes)
    X = X @ X.T if kernel == "precomputed" else layout(X)
    ours = SVC(kernel=kernel, class_weight="balanced").fit(X, y)
    theirs = svm.SVC(kernel=kernel, class_weight="balanced").fit(X, y)

    def form(values, n_support):
        # The number of support vectors is not unique: written as a word where it is an extent.
        shape = tuple("n_support" if extent == n_support else extent for extent in values.shape)
        return type(values), shape, values.dtype.kind

    names = ["support_", "support_vectors_", "n_support_", "dual_coef_", "intercept_", "n_iter_"]
    names += ["classes_", "class_weight_"] + (["coef_"] if kernel == "linear" else [])
    for name in names:
        expected = form(getattr(theirs, name), len(theirs.support_))
        assert form(getattr(ours, name), len(ours.support_)) == expected, name
    assert_array_equal(ours.classes_, theirs.classes_)
    assert_allclose(ours.class_weight_, theirs.class_weight_, rtol=1e-12)
    assert ours.fit_status_ == theirs.fit_status_ == 0
    assert ours.shape_fit_ == theirs.shape_fit_
    assert getattr(ours, "n_features_in_", None) == getattr(theirs, "n_features_in_", None)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_support_vectors_are_rows_grouped_by_class(n_classes, layout):
    X, y = classes(n_classes)
    weight = np.where(np.arange(len(y)) % 4 == 0, 0.0, 1.0)  # numbers must count these rows too
    model = SVC().fit(layout(X), y, weight)
    assert_array_equal(as_dense(model.support_vectors_), X[model.support_])
    owner = np.repeat(model.classes_, model.n_support_)
    assert_array_equal(y[model.support_], owner)
    for label in model.classes_:
        assert (np.diff(model.support_[owner == label]) > 0).all()
    assert (weight[model.support_] > 0).all()
    assert (as_dense(model.dual_coef_) != 0).any(axis=0).all()


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_coef_gives_the_decision_values(n_classes, layout):
    X, y = classes(n_classes)
    model = SVC(kernel="linear", decision_function_shape="ovo").fit(layout(X), y)
    values = X @ as_dense(model.coef_).T + model.intercept_
    assert_allclose(np.squeeze(values), model.decision_function(layout(X)), rtol=1e-6, atol=1e-6)
    frozen = model.coef_.data if sp.issparse(model.coef_) else model.coef_
    with pytest.raises(ValueError, match="read-only"):
        frozen[:] = 0


@pytest.mark.parametrize("kernel", ["rbf", "poly", "sigmoid", "precomputed"])
def test_coef_is_for_the_linear_kernel_only(kernel):
    X = TOY_X @ TOY_X.T if kernel == "precomputed" else TOY_X
    model = SVC(kernel=kernel).fit(X, TOY_Y)
    with pytest.raises(AttributeError, match="linear"):
        _ = model.coef_


@pytest.mark.parametrize("name", ["coef_", "n_support_", "support_", "n_iter_"])
def test_fitted_attributes_do_not_exist_before_fit(name):
    assert not hasattr(SVC(kernel="linear"), name)


# ---------------------------------------------------------------------- decisions and ties


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_shapes_of_decision_functions(n_classes):
    X, y = make_classification(
        n_samples=80, n_features=8, n_informative=8, n_redundant=0, n_classes=n_classes,
        n_clusters_per_class=1, random_state=0,
    )  # fmt: skip
    n_pairs = n_classes * (n_classes - 1) // 2
    ovo = SVC(decision_function_shape="ovo").fit(X, y).decision_function(X)
    ovr = SVC(decision_function_shape="ovr").fit(X, y).decision_function(X)
    assert ovo.shape == ((80,) if n_classes == 2 else (80, n_pairs))
    assert ovr.shape == ((80,) if n_classes == 2 else (80, n_classes))


def test_break_ties_takes_the_largest_decision_value():
    X, y = classes(3)
    Z = np.random.default_rng(0).standard_normal((2000, 5))
    model = SVC(kernel="linear").fit(X, y)
    values = model.decision_function(Z)
    # One vote for each class, and less than half a vote by decision values.
    tied = (np.abs(values - 1) < 0.5).all(axis=1)
    assert tied.any()
    assert (model.predict(Z)[tied] == 0).all()  # LIBSVM: the lowest class
    model.set_params(break_ties=True)
    assert_array_equal(model.predict(Z), values.argmax(axis=1))
    assert (model.predict(Z)[tied] != 0).any()


def test_break_ties_needs_one_versus_rest():
    model = SVC(break_ties=True, decision_function_shape="ovo").fit(TOY_X, TOY_Y)
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
