"""What a fold says of a row that it holds out cannot depend on what is known of that row.

Two searches whose labels, targets and weights differ only in rows that one fold holds out have the
same values of that fold, bit for bit; and equal rows have equal values.
"""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import make_classification, make_regression
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from onefit import SVC, SVR, GridSearchCV, NuSVC, NuSVR

C_PATH = {"C": [0.03, 0.5, 5.0, 80.0], "gamma": [0.05, 0.6]}
NU_PATH = {"nu": [0.1, 0.3], "gamma": [0.05, 0.6]}

CASES = {
    "SVC": (SVC(), C_PATH),
    "SVC, one gamma": (SVC(gamma=0.2), {"C": [0.1, 10.0]}),
    "SVC, scale": (SVC(), {"C": [0.1, 10.0]}),
    "SVC, linear": (SVC(kernel="linear"), {"C": [0.1, 10.0]}),
    "SVC, balanced": (SVC(class_weight="balanced"), C_PATH),
    "SVC, sigmoid": (SVC(kernel="sigmoid"), {"C": [0.1, 10.0], "gamma": [0.01]}),
    "SVC, coarse": (SVC(tol=0.3), C_PATH),
    "NuSVC": (NuSVC(), NU_PATH),
    "SVR": (SVR(), {**C_PATH, "epsilon": [0.1]}),
    "NuSVR": (NuSVR(), {"C": [0.1, 10.0], **NU_PATH}),
}


def problem(seed, n, n_classes, regression):
    random = np.random.default_rng(seed)
    if regression:
        X, y = make_regression(n, 5, noise=20.0, random_state=seed)
        y /= y.std()
    else:
        X, y = make_classification(
            n, 6, n_informative=5, n_redundant=0, n_classes=n_classes, flip_y=0.1, random_state=seed
        )
    X[random.integers(n, size=n // 10)] = X[0]  # equal rows
    splits = list(KFold(3, shuffle=seed % 2 == 0, random_state=None if seed % 2 else 0).split(X))
    return X, y, splits, random


def values_of(estimator, grid, X, y, splits, weights=None, prefix="", **options):
    grid = {prefix + name: values for name, values in grid.items()}
    search = GridSearchCV(estimator, grid, cv=splits, refit=False, error_score="raise", **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search.fit(X, y, **({} if weights is None else {"sample_weight": weights}))
    assert search.ledger_.by_sklearn == 0
    return [search._out_of_fold.values[cell] for cell in sorted(search._out_of_fold.values)], search


def changed(y, test, n_classes, regression, random):
    other = y.copy()
    if regression:
        other[test] += random.normal(size=len(test)) * 10
    else:
        other[test] = random.integers(n_classes, size=len(test))
    return other


def check(name, seed, n, n_classes, *, weighted=False, pipeline=False, **options):
    estimator, grid = CASES[name]
    regression = isinstance(estimator, SVR | NuSVR)
    X, y, splits, random = problem(seed, n, n_classes, regression)
    prefix = ""
    if pipeline:
        prefix = f"{type(estimator).__name__.lower()}__"
        estimator = make_pipeline(StandardScaler(), estimator)
    weights = random.uniform(0.5, 2.0, size=n) if weighted else None
    n_candidates = int(np.prod([len(values) for values in grid.values()]))
    found, _ = values_of(estimator, grid, X, y, splits, weights, prefix, **options)
    for fold, (_, test) in enumerate(splits):
        other = changed(y, test, n_classes, regression, random)
        if weighted:
            weights = weights.copy()
            weights[test] = random.uniform(0.0, 3.0, size=len(test))
        again, _ = values_of(estimator, grid, X, other, splits, weights, prefix, **options)
        for candidate in range(n_candidates):
            here = found[candidate * len(splits) + fold]
            assert_array_equal(here, again[candidate * len(splits) + fold])
            equal = np.flatnonzero((X[test] == X[0]).all(axis=1))
            assert len(np.unique(here[equal], axis=0)) <= 1
        if weighted:  # the next fold is compared with what it was
            return


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("seed", [0, 1])
def test_values_do_not_depend_on_labels_of_held_out_rows(name, n_classes, seed):
    if n_classes == 3 and "SVR" in name:
        pytest.skip("has no classes")
    check(name, seed, 150, n_classes)


@pytest.mark.parametrize("name", ["SVC", "SVC, one gamma"])
@pytest.mark.parametrize("n", [430, 1300])
@pytest.mark.parametrize("seed", [0, 1])
def test_nor_where_rows_are_many(name, n, seed):
    check(name, seed, n, 2)


@pytest.mark.parametrize("name", ["SVC", "NuSVC", "SVR", "NuSVR"])
@pytest.mark.parametrize("options", [{"n_jobs": 2}, {"return_train_score": True}], ids=str)
def test_nor_however_it_is_run(name, options):
    check(name, 3, 160, 2, **options)
    check(name, 2, 160, 2, pipeline=True, **options)


@pytest.mark.parametrize("name", ["SVC", "SVC, balanced", "NuSVC", "SVR", "NuSVR"])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_nor_on_their_weights(name, n_classes):
    for seed in range(2):
        check(name, seed, 160, n_classes, weighted=True)


@pytest.mark.parametrize("seed", range(3))
def test_a_class_that_only_held_out_rows_have_changes_nothing(seed):
    X, y, splits, _ = problem(seed, 150, 3, regression=False)
    found, _ = values_of(*CASES["SVC"], X, y, splits)
    other = y.copy()
    other[splits[1][1][::4]] = 7
    again, _ = values_of(*CASES["SVC"], X, other, splits)
    for candidate in range(8):
        assert_array_equal(found[3 * candidate + 1], again[3 * candidate + 1])


@pytest.mark.parametrize("name", ["SVC", "NuSVC", "SVR"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_every_way_to_run_a_search_gives_the_same_values(tmp_path, name, n_classes):
    estimator, grid = CASES[name]
    X, y, splits, _ = problem(5, 200, n_classes, regression=name == "SVR")
    expected, _ = values_of(estimator, grid, X, y, splits)
    for number, options in enumerate(
        (
            {"n_jobs": 2},
            {"checkpoint": tmp_path / "0"},
            {"checkpoint": tmp_path / "1", "n_jobs": 3},
            {"return_train_score": True},
        )
    ):
        found, _ = values_of(estimator, grid, X, y, splits, **options)
        for of_cell, other in zip(expected, found, strict=True):
            assert_array_equal(of_cell, other, err_msg=str(number))
