"""Bad input gets an error that names the parameter and what was given, before any work is done.

Where ``sklearn.svm.SVC`` raises too, the exception is expected to be of the same type.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import svm
from sklearn.exceptions import NotFittedError

from onefit import SVC

X = np.array([[-2, -1], [-1, -1], [-1, -2], [1, 1], [1, 2], [2, 1]], dtype=float)
Y = np.array([1, 1, 1, 2, 2, 2])
Y3 = np.array([1, 1, 2, 2, 3, 3])
GRAM = X @ X.T


def with_value(array, value):
    """A copy of ``array``, as floats, whose second entry is ``value``."""
    changed = np.array(array, dtype=float)
    changed[1] = value
    return changed


def error_of_scikit_learn(act, default=ValueError):
    """The type that scikit-learn raises where we raise; ``default`` where it lets things pass.

    An IndexError there is a slip of an unchecked shape, not a choice: ``default`` as well.
    """
    try:
        act(svm.SVC)
    except IndexError:
        return default
    except Exception as error:
        return type(error)
    return default


def check_raises(act, words):
    with pytest.raises(error_of_scikit_learn(act), match=words):
        act(SVC)


# -------------------------------------------------------------------------------- parameters

BAD_PARAMETERS = [
    ("C", 0),
    ("C", -1.0),
    ("C", np.nan),
    ("C", "1"),
    ("kernel", "gaussian"),
    ("kernel", None),
    ("gamma", -0.5),
    ("gamma", np.nan),
    ("gamma", np.inf),
    ("gamma", "large"),
    ("gamma", None),
    ("degree", -1),
    ("degree", 2.5),
    ("coef0", np.nan),
    ("coef0", np.inf),
    ("tol", 0),
    ("tol", -1e-3),
    ("tol", np.nan),
    ("cache_size", 0),
    ("cache_size", -200),
    ("cache_size", np.nan),
    ("cache_size", "all"),
    ("class_weight", "even"),
    ("class_weight", [1, 2]),
    ("shrinking", "yes"),
    ("max_iter", -2),
    ("max_iter", 1.5),
    ("decision_function_shape", "ovx"),
    ("decision_function_shape", None),
    ("break_ties", "no"),
    ("probability", "yes"),
    ("verbose", "loud"),
    ("random_state", "seed"),
]


@pytest.mark.parametrize(
    ("name", "value"), BAD_PARAMETERS, ids=[f"{name}={value!r}" for name, value in BAD_PARAMETERS]
)
def test_parameter(name, value):
    # The message names the parameter, and shows what was given.
    given = str(value) if isinstance(value, int | float) else repr(value)
    words = f"(?s)'?{name}'?.*{given.replace('[', '.').replace(']', '.')}"
    check_raises(lambda cls: cls(**{name: value}).fit(X, Y), words)


@pytest.mark.parametrize("value", [0, 1.5, "two"])
def test_n_jobs(value):
    with pytest.raises(ValueError, match=r"n_jobs"):
        SVC(n_jobs=value).fit(X, Y)


def test_probability_names_what_to_use_instead():
    with pytest.raises(ValueError, match=r"(?s)probability.*CalibratedClassifierCV"):
        SVC(probability=True).fit(X, Y)


def test_the_constructor_takes_anything():
    # scikit-learn's convention: a clone must not fail, so values are checked in fit.
    assert SVC(C=-1).get_params()["C"] == -1


@pytest.mark.parametrize(
    "class_weight",
    [{7: 1.0}, {1: 0.0}, {1: -1.0}, {1: np.nan}],
    ids=["no such class", "zero", "negative", "NaN"],
)
def test_class_weight(class_weight):
    check_raises(lambda cls: cls(class_weight=class_weight).fit(X, Y), "class_weight")


# --------------------------------------------------------------------------------------- X, y


@pytest.mark.parametrize(
    ("value", "words"), [(np.nan, "X.*NaN"), (np.inf, "X.*infinity"), (-np.inf, "X.*infinity")]
)
@pytest.mark.parametrize("layout", [np.asarray, np.float32, sp.csr_array])
def test_rows_that_are_not_finite(value, words, layout):
    bad = layout(with_value(X, value))
    check_raises(lambda cls: cls().fit(bad, Y), words)
    for ask in ("predict", "decision_function"):
        check_raises(lambda cls, ask=ask: getattr(cls().fit(layout(X), Y), ask)(bad), words)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_precomputed_kernel_that_is_not_finite(value):
    bad = with_value(GRAM, value)
    check_raises(lambda cls: cls(kernel="precomputed").fit(bad, Y), "NaN|infinity")


BAD_ROWS = {
    "one dimension": (X[:, 0], Y, "2D array.*1D array"),
    "three dimensions": (X[:, :, None], Y, "dim 3"),
    "no rows": (np.empty((0, 2)), [], "0 sample"),
    "no features": (np.empty((6, 0)), Y, r"0 feature\(s\).*\(6, 0\)"),
    "complex": (X + 1j, Y, "[Cc]omplex"),
    "text": (np.full((6, 2), "a"), Y, "could not convert string to float: .*a"),
    "too few rows": (X[:4], Y, "inconsistent numbers of samples.*4, 6"),
    "so large that squares overflow": (X * 1e300, Y, "finite|large"),
}


@pytest.mark.parametrize("case", BAD_ROWS)
def test_rows(case):
    rows, labels, words = BAD_ROWS[case]
    check_raises(lambda cls: cls().fit(rows, labels), words)


BAD_LABELS = {
    "NaN": (with_value(Y, np.nan), "y contains NaN"),
    "infinity": (with_value(Y, np.inf), "y contains infinity"),
    "one class": (np.ones(6, dtype=int), "class.*1 class"),
    "one class, text": (np.full(6, "ham"), "class.*1 class"),
    "continuous": (Y + 0.5 * np.arange(6) / 6, "continuous"),
    "two columns": (np.column_stack([Y, Y]), r"\(6, 2\)"),
    "too short": (Y[:-1], "inconsistent numbers of samples.*6, 5"),
    "missing": (None, "y.*None"),
}


@pytest.mark.parametrize("case", BAD_LABELS)
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_labels(case, layout):
    labels, words = BAD_LABELS[case]
    check_raises(lambda cls: cls().fit(layout(X), labels), words)


# ------------------------------------------------------------------------------ sample_weight

BAD_WEIGHTS = {
    "NaN": (Y, with_value(np.ones(6), np.nan), "sample_weight.*NaN"),
    "infinity": (Y, with_value(np.ones(6), np.inf), "sample_weight.*infinity"),
    "too short": (Y, np.ones(5), r"sample_weight.*\(5,\)"),
    "too long": (Y, np.ones(7), r"sample_weight.*\(7,\)"),
    "two columns": (Y, np.ones((6, 2)), "sample.weight|dimensions"),
    "text": (Y, np.full(6, "a"), "could not convert string to float: .*a"),
    "all zero": (Y, np.zeros(6), "zero or negative"),
    "all negative": (Y, -np.ones(6), "zero or negative"),
    "first class emptied": (Y, [0, 0, -1, 1, 1, 1], "positive.*same class"),
    "second class emptied": (Y, [1, 1, 1, 0, -0.5, 0], "positive.*same class"),
}


@pytest.mark.parametrize("case", BAD_WEIGHTS)
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_sample_weight(case, layout):
    labels, weight, words = BAD_WEIGHTS[case]
    check_raises(lambda cls: cls().fit(layout(X), labels, sample_weight=weight), f"(?s){words}")


@pytest.mark.parametrize("empty", [0.0, -1.0])
def test_sample_weight_that_empties_one_of_three_classes(empty):
    # scikit-learn goes on with two classes and then answers with the names of the wrong ones.
    with pytest.raises(ValueError, match=r"(?s)weight.*class|class.*weight"):
        SVC().fit(X, Y3, [1, 1, empty, empty, 1, 1])


# ------------------------------------------------------------------------------------ kernels


@pytest.mark.parametrize("shape", [(6, 2), (6, 7)])
def test_precomputed_kernel_that_is_not_square(shape):
    words = f"(?s)[Pp]recomputed.*square.*{shape[0]}.{{1,3}}{shape[1]}"
    check_raises(lambda cls: cls(kernel="precomputed").fit(np.ones(shape), Y), words)


def test_precomputed_kernel_that_is_sparse():
    check_raises(
        lambda cls: cls(kernel="precomputed").fit(sp.csr_array(GRAM), Y), "[Ss]parse.*precomputed"
    )


@pytest.mark.parametrize("width", [5, 7])
def test_precomputed_kernel_of_the_wrong_width_at_predict(width):
    rows = np.ones((3, width))
    check_raises(lambda cls: cls(kernel="precomputed").fit(GRAM, Y).predict(rows), f"{width}.*6")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_callable_kernel_that_is_not_finite(value):
    def kernel(A, B):
        return with_value(A @ B.T, value)

    check_raises(lambda cls: cls(kernel=kernel).fit(X, Y), "finite|NaN|infinity")


BAD_SHAPES = {"too wide": (6, 7), "too narrow": (6, 5), "too small": (5, 5), "a vector": (6,)}


@pytest.mark.parametrize("case", BAD_SHAPES)
def test_callable_kernel_of_the_wrong_shape(case):
    shape = BAD_SHAPES[case]
    check_raises(lambda cls: cls(kernel=lambda A, B: np.ones(shape)).fit(X, Y), "shape")


@pytest.mark.parametrize("ask", ["predict", "decision_function"])
def test_callable_kernel_of_the_wrong_shape_at_predict(ask):
    def act(cls):
        model = cls(kernel=lambda A, B: (A @ B.T)[:, : 6 if len(A) == 6 else 4]).fit(X, Y)
        return getattr(model, ask)(X[:3])

    # decision_function of scikit-learn reads beyond the matrix here instead of complaining.
    with pytest.raises(ValueError, match=r"4.*6|6.*4"):
        act(SVC)


def test_callable_kernel_that_raises_is_heard():
    def kernel(A, B):
        raise ZeroDivisionError("in the kernel")

    check_raises(lambda cls: cls(kernel=kernel).fit(X, Y), "in the kernel")


@pytest.mark.parametrize(
    ("params", "labels", "weight"),
    [
        ({"C": -1.0}, Y, None),
        ({"class_weight": {7: 1.0}}, Y, None),
        ({}, np.ones(6), None),
        ({}, Y[:-1], None),
        ({}, Y, np.ones(5)),
        ({}, Y, with_value(np.ones(6), np.nan)),
        ({}, Y, np.zeros(6)),
    ],
    ids=["C", "class_weight", "one class", "y", "short weight", "NaN weight", "zero weight"],
)
def test_nothing_is_computed_for_bad_input(params, labels, weight):
    calls = []

    def kernel(A, B):
        calls.append(len(A))
        return A @ B.T

    with pytest.raises(ValueError, match=r"C|class|samples|sample_weight|weights"):
        SVC(kernel=kernel, **params).fit(X, labels, weight)
    assert not calls


# ------------------------------------------------------------------------------------ predict


@pytest.mark.parametrize("ask", ["predict", "decision_function"])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("width", [1, 3])
def test_rows_of_the_wrong_width_at_predict(ask, layout, width):
    rows = layout(np.ones((4, width)))
    words = f"X has {width} features.*expecting 2"
    check_raises(lambda cls: getattr(cls().fit(layout(X), Y), ask)(rows), words)


@pytest.mark.parametrize("ask", ["predict", "decision_function"])
@pytest.mark.parametrize(
    ("rows", "words"),
    [(X[0], "2D array.*1D array"), (np.empty((0, 2)), "0 sample"), (X + 1j, "[Cc]omplex")],
    ids=["one dimension", "no rows", "complex"],
)
def test_rows_at_predict(ask, rows, words):
    check_raises(lambda cls: getattr(cls().fit(X, Y), ask)(rows), words)


@pytest.mark.parametrize("ask", ["predict", "decision_function"])
@pytest.mark.parametrize("params", [{}, {"kernel": "precomputed"}], ids=["rows", "precomputed"])
def test_before_fit(ask, params):
    with pytest.raises(NotFittedError, match="SVC"):
        getattr(SVC(**params), ask)(GRAM)


def test_score_before_fit():
    with pytest.raises(NotFittedError, match="SVC"):
        SVC().score(X, Y)


def test_probability_as_a_numpy_boolean():
    with pytest.raises(ValueError, match="CalibratedClassifierCV"):
        SVC(probability=np.True_).fit(X, Y)


def test_precomputed_values_that_no_float32_can_hold():
    kernel = np.eye(len(X))
    kernel[0, -1] = kernel[-1, 0] = 1e60
    with pytest.raises(ValueError, match="not finite"):
        SVC(kernel="precomputed").fit(kernel, Y)
