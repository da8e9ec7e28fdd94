"""Odd and bad input, beside scikit-learn: the same scores, or the same error in the same words."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.model_selection
from sklearn.datasets import make_classification
from sklearn.model_selection import GroupKFold, KFold, LeaveOneOut

from onefit import SVC, SVR, GridSearchCV
from tuning.comparison import TOL, check_same_search, theirs

X, y = make_classification(60, 5, n_informative=4, n_redundant=0, random_state=1)
GRID = {"C": [0.1, 1.0, 30.0], "gamma": [0.05, 0.5]}
SPARSE = np.where(X < 0, 0.0, X)
WEIGHTS = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
ROWS = np.arange(len(y))


def spoilt(value):
    data = X.copy()
    data[3, 2] = value
    return data


def frame(kind):
    library = pytest.importorskip(kind)
    return library.DataFrame({name: X[:, k] for k, name in enumerate("abcde")})


FEW = np.where(ROWS < 3, 1, 0)
CASES = {
    "NaN": {"X": spoilt(np.nan)},
    "NaN, raised": {"X": spoilt(np.nan), "error_score": "raise"},
    "infinity": {"X": spoilt(np.inf)},
    "an unknown parameter of fit": {"fit": {"weights": WEIGHTS}},
    "strings that are numbers": {"X": X.astype(str)},
    "text": {"X": np.full((60, 2), "a")},
    "complex": {"X": X.astype(complex)},
    "one dimension": {"X": X[:, 0]},
    "no features": {"X": X[:, :0]},
    "too few targets": {"y": y[:40]},
    "no targets": {"y": None},
    "continuous targets": {"y": y + WEIGHTS},
    "several targets": {"y": np.c_[y, y]},
    "a column of targets": {"y": y[:, None]},
    "NaN targets": {"y": np.where(y, np.nan, 1.0)},
    "one class": {"y": np.zeros(60, dtype=int)},
    "a class of three rows": {"y": FEW},
    "folds that lack a class": {"y": FEW, "cv": KFold(5)},
    "strings": {"y": np.array(["no", "yes"], dtype=object)[y]},
    "bytes": {"y": np.array([b"no", b"yes"])[y]},
    "truth": {"y": y.astype(bool)},
    "C = 0": {"grid": {"C": [0, 1.0]}},
    "C = -1, raised": {"grid": {"C": [1.0, -1.0]}, "error_score": "raise"},
    "C = None": {"grid": {"C": [1.0, None]}},
    "C is no list": {"grid": {"C": 1.0}},
    "gamma = 'small'": {"grid": {"gamma": [0.1, "small"]}},
    "no grid": {"grid": {}},
    "no values": {"grid": {"C": []}},
    "a number for a grid": {"grid": 3},
    "a wrong weight of classes": {"grid": {"class_weight": [{5: 1.0}, None]}},
    "zero weights": {"fit": {"sample_weight": WEIGHTS * (ROWS % 4 > 0)}},
    "negative weights": {"fit": {"sample_weight": np.where(ROWS == 3, -1.0, WEIGHTS)}},
    "no weight at all": {"fit": {"sample_weight": 0 * WEIGHTS}},
    "no weight of a class": {"fit": {"sample_weight": WEIGHTS * y}},
    "weights None": {"fit": {"sample_weight": None}},
    "a wrong scorer": {"scoring": "acuracy"},
    "a scorer that fails": {"scoring": lambda estimator, X, y: 1 / 0},
    "scores that are no numbers": {"scoring": lambda estimator, X, y: "good"},
    "scores that are NaN": {"scoring": lambda estimator, X, y: np.nan},
    "no probabilities": {"scoring": "neg_log_loss"},
    "one fold": {"cv": 1},
    "more folds than rows": {"cv": 100},
    "no folds": {"cv": []},
    "masks": {"cv": [(ROWS < 40, ROWS >= 40)]},
    "an empty test part": {"cv": [(ROWS, ROWS[:0])]},
    "an empty training part": {"cv": [(ROWS[:0], ROWS)]},
    "rows counted from the end": {"cv": [(ROWS[:40], np.arange(-20, 0))]},
    "rows that there are not": {"cv": [(ROWS[:40], np.array([99]))]},
    "rows twice": {"cv": [(np.r_[ROWS[:40], ROWS[:10]], np.r_[ROWS[40:], 50])]},
    "groups that are missing": {"cv": GroupKFold(3)},
    "every row left out": {"cv": LeaveOneOut(), "grid": {"C": [1.0, 5.0]}},
    "several scores, refit=True": {"scoring": ["accuracy", "f1"]},
    "a choice that there is not": {"refit": lambda results: 99},
    "the same rows over and over": {"X": np.ones((60, 3)), "grid": {"gamma": ["scale", "auto"]}},
    "pandas": {"X": lambda: frame("pandas")},
    "polars": {"X": lambda: frame("polars")},
    "half precision": {"X": X.astype(np.float16)},
    "another byte order": {"X": X.astype(">f8")},
    "read only": {"X": np.frombuffer(X.tobytes()).reshape(X.shape)},
    "lists": {"X": X.tolist(), "y": y.tolist()},
    "a kernel that is not square": {"kernel": "precomputed", "grid": {"C": [1.0]}},
    "a kernel that fails": {"kernel": lambda A, B: 1 / 0, "grid": {"C": [1.0]}},
    "a kernel of another shape": {"kernel": lambda A, B: np.ones(3), "grid": {"C": [1.0]}},
}
CASES |= {
    name: {"X": getattr(sp, name)(SPARSE)}
    for form in ("csr", "csc", "coo", "lil", "dok", "bsr", "dia")
    for name in (f"{form}_matrix", f"{form}_array")
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_what_scikit_learn_does(name):
    case = {"X": X, "y": y, "grid": GRID, "fit": {}, "kernel": "rbf", "cv": 3} | CASES[name]
    data = case.pop("X")
    data = data() if callable(data) else data
    targets, grid, fit, kernel = (case.pop(key) for key in ("y", "grid", "fit", "kernel"))
    machine = SVC(tol=TOL, kernel=kernel)
    ours, other = (
        ended(search, data, targets, fit)
        for search in (
            GridSearchCV(machine, grid, **case),
            sklearn.model_selection.GridSearchCV(theirs(machine), grid, **case),
        )
    )
    if isinstance(other, BaseException):
        assert isinstance(ours, BaseException)
        assert type(ours) is type(other)
        assert first_line(ours) == first_line(other)
    else:
        assert not isinstance(ours, BaseException), ours
        check_same_search(ours, other)
        if hasattr(other, "best_estimator_"):
            np.testing.assert_array_equal(ours.predict(data), other.predict(data))


def ended(search, data, targets, fit):
    """The fitted search, or what it raised."""
    try:
        return search.fit(data, targets, **fit)
    except Exception as error:
        return error


def first_line(error):
    return str(error).strip().split("\n")[0]


def test_too_few_weights():
    with pytest.raises(ValueError, match=r"\(40,\) vs 48 rows; sample_weight must be"):
        GridSearchCV(SVC(), GRID, error_score="raise").fit(X, y, sample_weight=WEIGHTS[:40])


def test_targets_of_a_regression_that_are_no_numbers():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for search in (
            GridSearchCV(SVR(), GRID),
            sklearn.model_selection.GridSearchCV(theirs(SVR()), GRID),
        ):
            with pytest.raises(ValueError, match="All the 30 fits failed"):
                search.fit(X, np.array(["a", "b"])[y])
