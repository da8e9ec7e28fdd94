"""Values that the core tells of test rows, beside those of solutions one by one."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import make_classification
from sklearn.model_selection import ShuffleSplit, StratifiedKFold

from onefit import SVC, GridSearchCV
from onefit.tuning.request import Cell
from onefit.tuning.values import StepValues
from onefit.tuning.workload import Workload

C = [0.05, 1.0, 40.0]
GAMMAS = [1e-6, 0.1, 1.0]


def classes(n_classes, n=90):
    return make_classification(
        n, 5, n_informative=4, n_redundant=0, n_classes=n_classes, class_sep=0.7, random_state=0
    )


def workload(n_classes, weights, threads, **parameters):
    X, y = classes(n_classes)
    w = np.random.default_rng(0).uniform(0, 2, len(y)) if weights else None
    if weights:
        w[::7] = 0.0
    machines = {
        number: SVC(C=c, gamma=gamma, **parameters)
        for number, (c, gamma) in enumerate((c, gamma) for c in C for gamma in GAMMAS)
    }
    splits = list(StratifiedKFold(3).split(X, y))
    work = Workload(X, y, w, splits, machines, threads=threads)
    cells = [Cell(k, fold) for k in machines for fold in range(3)]
    return work, work.chains(cells)[0]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("weights", [False, True], ids=["", "weights"])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_values_are_those_of_the_solutions(n_classes, weights, threads):
    """Also where they are tiny (the smallest gamma), and cells are solved on."""
    work, chains = workload(n_classes, weights, threads)
    expected, found = {}, {}

    def take(solved):
        values = StepValues(work, solved)
        held_out = values.held_out()
        _, test = work.splits[solved.chain.fold]
        n_right = [
            np.count_nonzero(
                values.machine(k)._labels(held_out[k], solved.chain.part.training.classes)
                == work.y[test]
            )
            for k in range(len(held_out))
        ]
        expected[id(solved.chain)] = held_out, n_right

    def take_values(solved):
        found[id(solved.chain)] = solved

    work.solve(chains, take, one_by_one=False)
    work.solve(chains, take, one_by_one=False, take_values=take_values)
    assert len(found) == len(expected) == len(chains)
    for chain in chains:
        values, n_right = expected[id(chain)]
        assert_allclose(found[id(chain)].values, values, rtol=1e-9, atol=1e-9)
        assert found[id(chain)].n_right == n_right
        assert found[id(chain)].finite == [True] * len(C)
        assert not found[id(chain)].unfinished


def test_what_does_not_converge_is_told_step_by_step():
    work, chains = workload(3, False, 1, max_iter=9)
    taken = []
    work.solve(chains, None, one_by_one=False, take_values=taken.append)
    assert len(taken) == len(chains)
    assert all(len(solved.unfinished) == len(C) for solved in taken)
    assert any(s.status.name == "max_iter" for t in taken for some in t.unfinished for s in some)


def test_a_fold_without_a_class_is_solved_in_another_way():
    X, y = classes(3, 60)
    lacking = np.flatnonzero(y < 2)
    splits = [
        (lacking[:30], np.flatnonzero(y == 2)),
        (np.arange(0, 60, 2), np.arange(1, 60, 2)),
    ]
    machines = {0: SVC(C=1.0, gamma=0.1)}
    work = Workload(X, y, None, splits, machines, threads=1)
    chains, impossible = work.chains([Cell(0, 0), Cell(0, 1)])
    assert not impossible
    solved, valued = [], []
    work.solve(chains, solved.append, one_by_one=False, take_values=valued.append)
    assert len(solved) == 2  # all of a call in the same way
    assert not valued


@pytest.mark.parametrize("scoring", [None, "f1_macro", "roc_auc_ovr"])
def test_scores_are_those_of_cells_one_by_one(scoring, tmp_path):
    """A checkpoint is given cell after cell, from whole solutions."""
    X, y = classes(3)
    if scoring == "roc_auc_ovr":
        y = (y > 0).astype(int)
        scoring = "roc_auc"
    grid = {"C": C, "gamma": GAMMAS[1:], "break_ties": [False, True]}
    at_once = GridSearchCV(SVC(), grid, scoring=scoring, refit=False).fit(X, y)
    one_by_one = GridSearchCV(
        SVC(), grid, scoring=scoring, refit=False, checkpoint=tmp_path / "cells"
    ).fit(X, y)
    for name in one_by_one.cv_results_:
        if "time" in name or name == "params":
            continue
        found, expected = at_once.cv_results_[name], one_by_one.cv_results_[name]
        assert np.array_equal(np.ma.getdata(found), np.ma.getdata(expected))


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("cv", [StratifiedKFold(5), ShuffleSplit(4, test_size=0.3, random_state=0)])
def test_folds_that_start_from_all_rows_end_where_cold_ones_do(cv, n_jobs):
    X, y = classes(2, 900)
    grid = {"C": [0.01, 0.1, 1.0, 30.0], "gamma": [0.02, 0.5]}
    weights = {"sample_weight": np.where(np.arange(900) % 9 == 0, 0.0, 1.5)}
    for fit_params in ({}, weights):
        how = {"cv": cv, "refit": False, "n_jobs": n_jobs}
        seeded = GridSearchCV(SVC(tol=1e-7), grid, **how).fit(X, y, **fit_params)
        cold = GridSearchCV(SVC(tol=1e-7), grid, seeding="none", **how).fit(X, y, **fit_params)
        for fold in range(cv.get_n_splits()):
            name = f"split{fold}_test_score"
            assert np.array_equal(seeded.cv_results_[name], cold.cv_results_[name])
        kept, others = seeded._out_of_fold.values, cold._out_of_fold.values
        assert kept.keys() == others.keys()
        for cell in kept:
            assert_allclose(kept[cell], others[cell], rtol=0, atol=1e-3)
