"""What a result says of itself."""

import sys

import numpy as np
import pytest
from sklearn.datasets import make_classification, make_regression
from sklearn.metrics import f1_score, mean_absolute_error, r2_score
from sklearn.model_selection import LeaveOneOut, cross_val_score

from onefit import SVC, SVR, leave_one_out
from onefit.loo import DecidedBy


@pytest.fixture(scope="module")
def classified():
    X, y = make_classification(80, 4, flip_y=0.1, random_state=0)
    return leave_one_out(SVC(gamma=0.1), X, y)


@pytest.fixture(scope="module")
def regressed():
    X, y = make_regression(60, 3, noise=10.0, random_state=0)
    return leave_one_out(SVR(gamma=0.1, C=10.0), X, y / y.std())


def test_errors(classified, regressed):
    wrong = classified.predictions != classified.y
    assert classified.error == wrong.mean()
    rate = wrong.mean()
    assert classified.standard_error == pytest.approx(np.sqrt(rate * (1 - rate) / len(wrong)))
    squares = (regressed.y - regressed.predictions) ** 2
    assert regressed.error == pytest.approx(squares.mean())
    assert regressed.standard_error == pytest.approx(squares.std() / np.sqrt(len(squares)))
    assert regressed.residuals == pytest.approx(regressed.y - regressed.predictions)
    assert regressed.r2 == pytest.approx(r2_score(regressed.y, regressed.predictions))


def test_scores_of_rows_and_of_all_together(classified, regressed):
    pooled = classified.pooled_score(lambda y, p: f1_score(y, p, zero_division=0.0))
    alone = classified.mean_of_row_scores(lambda y, p: f1_score(y, p, zero_division=0.0))
    assert pooled == pytest.approx(f1_score(classified.y, classified.predictions))
    assert alone < pooled  # a row of the negative class has no F1
    assert classified.pooled_score() == classified.mean_of_row_scores() == 1 - classified.error
    assert regressed.pooled_score() == pytest.approx(regressed.error)
    X, y = make_regression(60, 3, noise=10.0, random_state=0)
    theirs = cross_val_score(
        SVR(gamma=0.1, C=10.0), X, y / y.std(), cv=LeaveOneOut(), scoring="neg_mean_absolute_error"
    )
    assert regressed.mean_of_row_scores(mean_absolute_error) == pytest.approx(
        -theirs.mean(), abs=1e-2
    )


def test_what_is_of_regression_only(classified):
    with pytest.raises(AttributeError, match="residuals is of a regression"):
        _ = classified.residuals
    with pytest.raises(AttributeError, match="r2 is of a regression"):
        _ = classified.r2


def test_summaries(classified, regressed):
    text = str(classified)
    assert "Leave-one-out of 80 rows (exact)" in text
    assert f"error rate {classified.error:.4g}" in text
    assert "the fit on all rows" in text
    assert "R² of all predictions" in regressed.summary()
    assert sum(classified.counts().values()) == 80
    assert classified.ledger.n_iter >= classified.n_iter.sum()
    assert classified.ledger.kernel_entries <= 80 * 80
    assert classified.ledger.seconds > 0


def test_influence(classified, regressed):
    for result in (classified, regressed):
        known = ~np.isnan(result.decision_values)
        moved = np.abs(result.full_values - result.decision_values)
        assert result.influence[known] == pytest.approx(moved[known])
        assert (result.influence[result.decided_by == DecidedBy.SOLVER] > 0).any()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_plots(n_classes, regressed):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    X, y = make_classification(60, 4, n_informative=3, n_redundant=0, n_classes=n_classes)
    result = leave_one_out(SVC(gamma=0.1), X, y)
    ax = result.plot()
    drawn = sum(len(points.get_offsets()) for points in ax.collections)
    assert drawn == np.isfinite(result.influence).sum()
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert any(label.startswith("not a support vector") for label in labels)
    _, given = pyplot.subplots()
    assert regressed.plot(ax=given) is given
    pyplot.close("all")


def test_plots_without_matplotlib(classified, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'onefit\[plot\]'"):
        classified.plot()
