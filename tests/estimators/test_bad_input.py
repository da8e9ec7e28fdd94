"""Bad input gets an error that names the parameter and what was given, before any work is done.

Where scikit-learn's class raises too, the exception is expected to be of the same type.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from estimators.examples import (
    CLASSIFIERS,
    ESTIMATORS,
    REGRESSORS,
    TOY_X,
    TOY_Y,
    classes,
    dense_and_sparse,
    every_classifier,
    every_estimator,
    every_regressor,
    of_scikit_learn,
)
from onefit import NuSVC, NuSVR

X, Y = TOY_X, TOY_Y
Y3 = np.array([1, 1, 2, 2, 3, 3])
GRAM = X @ X.T


def with_value(array, value):
    """A copy of ``array``, as floats, whose second entry is ``value``."""
    changed = np.array(array, dtype=float)
    changed[1] = value
    return changed


def error_of_scikit_learn(cls, act, default=ValueError):
    """The type that scikit-learn raises where we raise; ``default`` where it lets things pass.

    An IndexError there is a slip of an unchecked shape, not a choice: ``default`` as well.
    """
    try:
        act(of_scikit_learn(cls))
    except IndexError:
        return default
    except Exception as error:
        return type(error)
    return default


def check_raises(cls, act, words):
    with pytest.raises(error_of_scikit_learn(cls, act), match=words):
        act(cls)


def methods(cls):
    """Names of what answers for rows."""
    return ("predict", "decision_function") if is_classifier(cls()) else ("predict",)


# -------------------------------------------------------------------------------- parameters

BAD_PARAMETERS = {
    "kernel": ["gaussian", None],
    "gamma": [-0.5, np.nan, np.inf, "large", None],
    "degree": [-1, 2.5],
    "coef0": [np.nan, np.inf],
    "tol": [0, -1e-3, np.nan],
    "cache_size": [0, -200, np.nan, "all"],
    "class_weight": ["even", [1, 2]],
    "shrinking": ["yes"],
    "max_iter": [-2, 1.5],
    "decision_function_shape": ["ovx", None],
    "break_ties": ["no"],
    "probability": ["yes"],
    "verbose": ["loud"],
    "random_state": ["seed"],
    "C": [0, -1.0, np.nan, "1", None],
    "nu": [0, 0.0, -0.5, 1.5, np.nan, np.inf, "0.5", None],
    "epsilon": [-0.1, np.nan, np.inf, "0.1", None],
}
CASES = [
    pytest.param(cls, name, value, id=f"{cls.__name__}-{name}={value!r}")
    for cls in ESTIMATORS
    for name, bad in BAD_PARAMETERS.items()
    for value in bad
    if name in cls().get_params()
]


@pytest.mark.parametrize(("cls", "name", "value"), CASES)
def test_parameter(cls, name, value):
    # The message names the parameter, and shows what was given.
    given = str(value) if isinstance(value, int | float) else repr(value)
    words = f"(?s)'?{name}'?.*{given.replace('[', '.').replace(']', '.')}"
    check_raises(cls, lambda c: c(**{name: value}).fit(X, Y), words)


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_nu_svr_needs_a_finite_penalty():
    check_raises(NuSVR, lambda c: c(C=np.inf).fit(X, Y), "(?s)C.*inf|not finite")
    with pytest.raises(ValueError, match=r"overflows.*finite C"):
        NuSVR(C=1e308).fit(X, Y, np.full(6, 1e10))


@every_estimator
@pytest.mark.parametrize("value", [0, 1.5, "two"])
def test_n_jobs(cls, value):
    with pytest.raises(ValueError, match=r"n_jobs"):
        cls(n_jobs=value).fit(X, Y)


@every_classifier
@pytest.mark.parametrize("value", [True, np.True_])
def test_probability_names_what_to_use_instead(cls, value):
    with pytest.raises(
        ValueError, match=rf"(?s)probability.*CalibratedClassifierCV.{cls.__name__}"
    ):
        cls(probability=value).fit(X, Y)


@every_estimator
def test_the_constructor_takes_anything(cls):
    # scikit-learn's convention: a clone must not fail, so values are checked in fit.
    assert cls(tol=-1).get_params()["tol"] == -1


@every_classifier
@pytest.mark.parametrize(
    "class_weight",
    [{7: 1.0}, {1: 0.0}, {1: -1.0}, {1: np.nan}],
    ids=["no such class", "zero", "negative", "NaN"],
)
def test_class_weight(cls, class_weight):
    check_raises(cls, lambda c: c(class_weight=class_weight).fit(X, Y), "class_weight")


@pytest.mark.parametrize("y", [[1, 1, 1, 1, 1, 2], [1, 1, 2, 3, 3, 3]])
@dense_and_sparse
def test_nu_that_the_classes_do_not_allow(y, layout):
    check_raises(NuSVC, lambda c: c(nu=0.8).fit(layout(X), y), "(?s)infeasible.*0.8.*at most")
    NuSVC(nu=0.3).fit(layout(X), y)


def test_nu_that_the_weights_do_not_allow():
    weight = [1, 1, 1, 9, 9, 9]
    check_raises(NuSVC, lambda c: c(nu=0.5).fit(X, Y, weight), "infeasible.*0.5.*at most 0.2")
    NuSVC(nu=0.2).fit(X, Y, weight)


def test_classes_without_a_margin():
    with pytest.warns(ConvergenceWarning, match=r"no margin.*nu=0\.5"):
        model = NuSVC().fit(np.ones((6, 2)), Y)
    assert np.isfinite(model.decision_function(X)).all()
    rows, labels = classes(3, seed=1)  # overlapping, and ends far apart from each other
    with pytest.warns(ConvergenceWarning, match=r"nu=0\.1.*larger"):
        NuSVC(kernel="linear", nu=0.1).fit(rows, labels)
    NuSVC(kernel="linear", nu=0.5).fit(rows, labels)


# --------------------------------------------------------------------------------------- X, y


@every_estimator
@pytest.mark.parametrize(
    ("value", "words"), [(np.nan, "X.*NaN"), (np.inf, "X.*infinity"), (-np.inf, "X.*infinity")]
)
@pytest.mark.parametrize("layout", [np.asarray, np.float32, sp.csr_array])
def test_rows_that_are_not_finite(cls, value, words, layout):
    bad = layout(with_value(X, value))
    check_raises(cls, lambda c: c().fit(bad, Y), words)
    for ask in methods(cls):
        check_raises(cls, lambda c, ask=ask: getattr(c().fit(layout(X), Y), ask)(bad), words)


@every_estimator
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_precomputed_kernel_that_is_not_finite(cls, value):
    bad = with_value(GRAM, value)
    check_raises(cls, lambda c: c(kernel="precomputed").fit(bad, Y), "NaN|infinity")


BAD_ROWS = {
    "one dimension": (X[:, 0], Y, "2D array.*1D array"),
    "three dimensions": (X[:, :, None], Y, "dim 3"),
    "no rows": (np.empty((0, 2)), [], "0 sample"),
    "no sparse rows": (sp.csr_array((0, 2)), [], "0 sample"),
    "no features": (np.empty((6, 0)), Y, r"0 feature\(s\).*\(6, 0\)"),
    "complex": (X + 1j, Y, "[Cc]omplex"),
    "text": (np.full((6, 2), "a"), Y, "could not convert string to float: .*a"),
    "rows of several lengths": ([[1, 2], [3]] * 3, Y, "inhomogeneous|sequence"),
    "too few rows": (X[:4], Y, "inconsistent numbers of samples.*4, 6"),
    "so large that squares overflow": (X * 1e300, Y, "finite|large"),
    "nothing": (None, Y, "None|array"),
}


@every_estimator
@pytest.mark.parametrize("case", BAD_ROWS)
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_rows(cls, case):
    rows, targets, words = BAD_ROWS[case]
    check_raises(cls, lambda c: c().fit(rows, targets), words)


BAD_TARGETS = {
    "NaN": (with_value(Y, np.nan), "y contains NaN"),
    "infinity": (with_value(Y, np.inf), "y contains infinity"),
    "two columns": (np.column_stack([Y, Y]), r"\(6, 2\)"),
    "too short": (Y[:-1], "inconsistent numbers of samples.*6, 5"),
    "too long": (np.append(Y, 1), "inconsistent numbers of samples.*6, 7"),
    "complex": (Y + 1j, "[Cc]omplex"),
    "missing": (None, "y.*None"),
    "a number": (1.0, "singleton|shape"),
}
BAD_LABELS = {
    "one class": (np.ones(6, dtype=int), "class.*1 class"),
    "one class, text": (np.full(6, "ham"), "class.*1 class"),
    "continuous": (Y + 0.5 * np.arange(6) / 6, "continuous"),
}
BAD_NUMBERS = {
    "text": (np.array(["ham", "spam"])[Y - 1], "could not convert string to float.*(ham|spam)"),
    "objects": (np.array(["ham", "spam"], object)[Y - 1], "could not convert string to float"),
    "None": (np.array([1.0, None, 2.0, 3.0, 1.0, 2.0], object), "NaN|None"),
}


@pytest.mark.parametrize(
    ("cls", "case", "targets", "words"),
    [
        pytest.param(cls, case, *bad, id=f"{cls.__name__}-{case}")
        for group, cases in (
            (ESTIMATORS, BAD_TARGETS),
            (CLASSIFIERS, BAD_LABELS),
            (REGRESSORS, BAD_NUMBERS),
        )
        for cls in group
        for case, bad in cases.items()
    ],
)
@dense_and_sparse
def test_targets(cls, case, targets, words, layout):
    check_raises(cls, lambda c: c().fit(layout(X), targets), words)


@every_estimator
@pytest.mark.parametrize("case", ["NaN", "infinity", "two columns", "too short", "complex"])
def test_targets_with_a_callable_kernel(cls, case):
    targets, words = BAD_TARGETS[case]
    with pytest.raises(ValueError, match=words.replace("contains", "contains.*")):
        cls(kernel=lambda A, B: A @ B.T).fit(X, targets)


@every_regressor
def test_no_rows_with_a_callable_kernel(cls):
    with pytest.raises(ValueError, match="sample"):
        cls(kernel=lambda A, B: A @ B.T).fit(X[:0], Y[:0])


# ------------------------------------------------------------------------------ sample_weight

BAD_WEIGHTS = {
    "NaN": (with_value(np.ones(6), np.nan), "sample_weight.*NaN"),
    "infinity": (with_value(np.ones(6), np.inf), "sample_weight.*infinity"),
    "too short": (np.ones(5), r"sample_weight.*\(5,\)"),
    "too long": (np.ones(7), r"sample_weight.*\(7,\)"),
    "none at all": (np.ones(0), "sample_weight|0 sample"),
    "two columns": (np.ones((6, 2)), "sample.weight|dimensions"),
    "complex": (np.ones(6) + 1j, "[Cc]omplex"),
    "text": (np.full(6, "a"), "could not convert string to float: .*a"),
    "all zero": (np.zeros(6), "zero or negative"),
    "all negative": (-np.ones(6), "zero or negative"),
}


@every_estimator
@pytest.mark.parametrize("case", BAD_WEIGHTS)
@dense_and_sparse
def test_sample_weight(cls, case, layout):
    weight, words = BAD_WEIGHTS[case]
    check_raises(cls, lambda c: c().fit(layout(X), Y, sample_weight=weight), f"(?s){words}")


@every_estimator
def test_one_number_as_the_weight_of_all(cls):
    with pytest.raises((TypeError, ValueError), match="scalar"):
        cls().fit(X, Y, sample_weight=2.0)


@every_classifier
@pytest.mark.parametrize("weight", [[0, 0, -1, 1, 1, 1], [1, 1, 1, 0, -0.5, 0]])
@dense_and_sparse
def test_sample_weight_that_leaves_one_class(cls, weight, layout):
    check_raises(cls, lambda c: c().fit(layout(X), Y, weight), "positive.*same class")


@every_classifier
@pytest.mark.parametrize("empty", [0.0, -1.0])
def test_sample_weight_that_empties_one_of_three_classes(cls, empty):
    # scikit-learn goes on with two classes and then answers with the names of the wrong ones.
    with pytest.raises(ValueError, match=r"(?s)weight.*class|class.*weight"):
        cls().fit(X, Y3, [1, 1, empty, empty, 1, 1])


# ------------------------------------------------------------------------------------ kernels


@every_estimator
@pytest.mark.parametrize("shape", [(6, 2), (6, 7)])
def test_precomputed_kernel_that_is_not_square(cls, shape):
    words = f"(?s)[Pp]recomputed.*square.*{shape[0]}.{{1,3}}{shape[1]}"
    check_raises(cls, lambda c: c(kernel="precomputed").fit(np.ones(shape), Y), words)


@every_estimator
def test_precomputed_kernel_that_is_sparse(cls):
    words = "[Ss]parse.*precomputed"
    check_raises(cls, lambda c: c(kernel="precomputed").fit(sp.csr_array(GRAM), Y), words)


@every_estimator
@pytest.mark.parametrize("width", [5, 7])
def test_precomputed_kernel_of_the_wrong_width_at_predict(cls, width):
    rows = np.ones((3, width))
    act = lambda c: c(kernel="precomputed").fit(GRAM, Y).predict(rows)  # noqa: E731
    check_raises(cls, act, f"{width}.*6")


@every_estimator
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_callable_kernel_that_is_not_finite(cls, value):
    def kernel(A, B):
        return with_value(A @ B.T, value)

    check_raises(cls, lambda c: c(kernel=kernel).fit(X, Y), "finite|NaN|infinity")


BAD_SHAPES = {"too wide": (6, 7), "too narrow": (6, 5), "too small": (5, 5), "a vector": (6,)}


@every_estimator
@pytest.mark.parametrize("case", BAD_SHAPES)
def test_callable_kernel_of_the_wrong_shape(cls, case):
    shape = BAD_SHAPES[case]
    check_raises(cls, lambda c: c(kernel=lambda A, B: np.ones(shape)).fit(X, Y), "shape")


@every_estimator
def test_callable_kernel_of_the_wrong_shape_at_predict(cls):
    model = cls(kernel=lambda A, B: (A @ B.T)[:, : 6 if len(A) == 6 else 4]).fit(X, Y)
    for ask in methods(cls):
        # decision_function of scikit-learn reads beyond the matrix here instead of complaining.
        with pytest.raises(ValueError, match=r"4.*6|6.*4"):
            getattr(model, ask)(X[:3])


@every_estimator
def test_callable_kernel_that_raises_is_heard(cls):
    def kernel(A, B):
        raise ZeroDivisionError("in the kernel")

    check_raises(cls, lambda c: c(kernel=kernel).fit(X, Y), "in the kernel")


@every_estimator
def test_precomputed_values_that_no_float32_can_hold(cls):
    kernel = np.eye(len(X))
    kernel[0, -1] = kernel[-1, 0] = 1e60
    with pytest.raises(ValueError, match="not finite"):
        cls(kernel="precomputed").fit(kernel, Y)


# ------------------------------------------------------------------------------------ predict


@every_estimator
@dense_and_sparse
@pytest.mark.parametrize("width", [1, 3])
def test_rows_of_the_wrong_width_at_predict(cls, layout, width):
    rows = layout(np.ones((4, width)))
    words = f"X has {width} features.*expecting 2"
    for ask in methods(cls):
        check_raises(cls, lambda c, ask=ask: getattr(c().fit(layout(X), Y), ask)(rows), words)


@every_estimator
@pytest.mark.parametrize(
    ("rows", "words"),
    [(X[0], "2D array.*1D array"), (np.empty((0, 2)), "0 sample"), (X + 1j, "[Cc]omplex")],
    ids=["one dimension", "no rows", "complex"],
)
def test_rows_at_predict(cls, rows, words):
    for ask in methods(cls):
        check_raises(cls, lambda c, ask=ask: getattr(c().fit(X, Y), ask)(rows), words)


@every_estimator
def test_a_model_of_dense_rows_refuses_sparse_rows(cls):
    words = f"sparse input in .{cls.__name__}. trained on dense"
    rows = sp.csr_array(X)
    for ask in methods(cls):
        check_raises(cls, lambda c, ask=ask: getattr(c().fit(X, Y), ask)(rows), words)


@every_estimator
@pytest.mark.parametrize("kernel", ["rbf", "precomputed", lambda A, B: A @ B.T])
def test_before_fit(cls, kernel):
    for ask in methods(cls):
        with pytest.raises(NotFittedError, match=cls.__name__):
            getattr(cls(kernel=kernel), ask)(GRAM)
    with pytest.raises(NotFittedError, match=cls.__name__):
        cls(kernel=kernel).score(GRAM, Y)
