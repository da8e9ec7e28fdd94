"""Folds that are dealt without scikit-learn are those of scikit-learn."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import KFold, LeaveOneGroupOut, StratifiedKFold, check_cv

from onefit.model_selection import crossfit
from onefit.model_selection.splitting import Dealt, held_out, splits_of, trained_share


def assert_same(cv, y, *, classifier=True, groups=None):
    X = np.zeros((len(y), 1))
    expected = list(check_cv(cv, y, classifier=classifier).split(X, y, groups))
    found = splits_of(cv, X, y, groups, classifier=classifier)
    assert len(found) == len(expected)
    for (train, test), (expected_train, expected_test) in zip(found, expected, strict=True):
        np.testing.assert_array_equal(train, expected_train)
        np.testing.assert_array_equal(test, expected_test)
        assert train.dtype == expected_train.dtype
        assert test.dtype == expected_test.dtype


@given(st.data())
def test_stratified_folds(data):
    n_splits = data.draw(st.integers(2, 6))
    n_classes = data.draw(st.integers(1, 5))
    sizes = [data.draw(st.integers(n_splits, 3 * n_splits + 1)) for _ in range(n_classes)]
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    labels = rng.permutation(100)[:n_classes] - 50
    y = rng.permutation(np.repeat(labels, sizes))
    kind = data.draw(st.sampled_from(["int64", "int8", "uint64", "str", "bool", "float64"]))
    y = (y > labels[0]) if kind == "bool" else y.astype(kind)
    if min(np.unique(y, return_counts=True)[1]) >= n_splits:
        assert_same(data.draw(st.sampled_from([n_splits, StratifiedKFold(n_splits)])), y)


@pytest.mark.parametrize(
    "cv",
    [None, 3, StratifiedKFold(3, shuffle=True, random_state=0), KFold(4), LeaveOneGroupOut()],
)
@pytest.mark.parametrize("classifier", [True, False])
def test_other_folds(cv, classifier):
    y = np.random.default_rng(0).integers(0, 3, 40)
    groups = np.arange(40) % 7 if isinstance(cv, LeaveOneGroupOut) else None
    assert_same(cv, y, classifier=classifier, groups=groups)


def test_dealt_folds_are_a_sequence():
    y = np.arange(30) % 3
    folds = splits_of(5, np.zeros((30, 1)), y, None, classifier=True)
    assert isinstance(folds, Dealt)
    every = list(folds)
    assert len(every) == len(folds) == 5
    for one, same in [(folds[-1], every[4]), (folds[1:4][2], every[3]), (folds[::-2][1], every[2])]:
        np.testing.assert_array_equal(one[0], same[0])
        np.testing.assert_array_equal(one[1], same[1])
    with pytest.raises(IndexError):
        folds[5]
    rows, sizes = held_out(folds)
    np.testing.assert_array_equal(rows, held_out(every)[0])
    assert sizes == held_out(every)[1]
    assert trained_share(folds, 30) == pytest.approx(trained_share(every, 30))


def test_numbers_of_folds_of_any_kind():
    assert_same(StratifiedKFold(np.int64(3)), np.arange(30) % 3)
    assert_same(StratifiedKFold(np.uint8(4)), (np.arange(30) % 3).astype(">i4")[::-1])


def test_what_scikit_learn_says_of_folds():
    y = np.repeat([0, 1], [20, 3])
    with pytest.warns(UserWarning, match="least populated class"):
        splits_of(5, np.zeros((23, 1)), y, None, classifier=True)
    with pytest.raises(ValueError, match="cannot be greater than the number of members"):
        splits_of(21, np.zeros((23, 1)), y, None, classifier=True)
    with pytest.raises(ValueError, match="at least one train/test split"):
        splits_of(1, np.zeros((23, 1)), y, None, classifier=True)
    with pytest.raises(ValueError, match="0 sample"):
        splits_of(3, np.zeros((0, 1)), y[:0], None, classifier=True)
    with pytest.warns(UserWarning, match="groups parameter is ignored"):
        splits_of(3, np.zeros((23, 1)), y, y, classifier=True)


@pytest.mark.parametrize("few", [0, 20])  # one by one, or together
@pytest.mark.parametrize(
    ("folds", "expected"),
    [
        ([[0, 1, 2], [2, 1, 4]], True),
        ([[4], [4], [4]], True),
        ([[0, 1, 2], [2, 2, 4]], False),
        ([[0, 1], []], False),
        ([[0, -1], [1]], False),
        ([[0.0, 1.0], [1]], False),
    ],
)
def test_rows_of_folds_are_different(monkeypatch, few, folds, expected):
    monkeypatch.setattr(crossfit, "FEW_FOLDS", few)
    assert crossfit.are_all_different([np.array(rows) for rows in folds], 5) is expected
    with pytest.raises(IndexError):
        crossfit.are_all_different([np.array([0, 5]), np.array([1])], 5)
