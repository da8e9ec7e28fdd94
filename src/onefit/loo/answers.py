"""From what is known of left-out rows to what is said of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import FitFailedWarning

from onefit.estimators.base import KernelMachine
from onefit.estimators.classification import ClassTraining, KernelClassifier
from onefit.folds import FoldWork
from onefit.kernels import Floats
from onefit.loo.checks import BOUND, DOUBTFUL, ESTIMATE, FAILED, RULES, SOLVER, UNDECIDED
from onefit.loo.estimated import estimated_rows
from onefit.loo.exact import LeaveOneOutFit
from onefit.loo.ledger import LooLedger
from onefit.loo.left_out import LeftOutRows, Proofs, Rules
from onefit.loo.result import LooResult, OwnValues
from onefit.problem import class_pairs
from onefit.voting import class_values


def needs_values(machine: KernelMachine) -> bool:
    """Whether predictions are made of values, not of signs: of a number, or where ties are."""
    return not isinstance(machine, KernelClassifier) or machine.break_ties


def exact_result(fit: LeaveOneOutFit, proofs: Proofs) -> LooResult:
    """Every row, by a rule or by a solver."""
    if getattr(fit.machine, "break_ties", False) and fit.n_classes > 2:
        proofs = Proofs.NONE  # ties are broken by the values
    tables = fit.rules(signs_suffice=proofs is not Proofs.NONE)
    found = fit.solve(tables, proofs)
    fit.decide_other_pairs(found)
    _warn_of(found.errors, fit.n)
    return _result(fit, found, _predictions(fit, found), exact=found.exact)


def bound_result(fit: LeaveOneOutFit) -> LooResult:
    """What the rules alone say; a row that they leave open loses all pairs that they leave open."""
    tables = fit.rules(signs_suffice=True)
    found = fit.settled(tables)
    _lose(fit, tables, found)
    fit.decide_other_pairs(found)
    fit.check_rows_that_cannot_go(found)
    _warn_of(found.errors, fit.n)
    predictions = _predictions(fit, found)
    # A row that wins all the same is settled.
    right = predictions == fit.y[fit.whole.order]
    found.decided[(found.decided == SOLVER) & right] = BOUND
    found.decided[found.decided == SOLVER] = UNDECIDED
    return _result(fit, found, predictions, exact=False)


def approximate_result(fit: LeaveOneOutFit, *, all_values: bool) -> LooResult:
    """Every row by its estimate; those that are in doubt can be settled later."""
    if getattr(fit.machine, "break_ties", False) and fit.n_classes > 2:
        all_values = True  # ties are broken by the values
    found, work = estimated_rows(fit, all_values=all_values)
    _warn_of(found.errors, fit.n)
    predictions = _predictions(fit, found)
    refiner = partial(_refined, fit, found, work, all_values=all_values)
    return _result(fit, found, predictions, exact=False, estimates=work, refiner=refiner)


def _refined(
    fit: LeaveOneOutFit, found: LeftOutRows, work: FoldWork, *, all_values: bool
) -> LooResult:
    """The estimates, with exact answers for the rows that were in doubt."""
    doubtful = found.decided == DOUBTFUL
    if all_values or needs_values(fit.machine):
        fit.ask_values()
    solved = fit.solve(fit.rules(signs_suffice=False), only=doubtful)
    _warn_of(solved.errors, fit.n)
    mixed = LeftOutRows(
        values=np.where(doubtful[:, None], solved.values, found.values),
        signs=np.where(doubtful[:, None], solved.signs, found.signs),
        reached=np.where(doubtful[:, None], solved.reached, found.reached),
        decided=np.where(doubtful, solved.decided, found.decided),
        work=[solved.work[row] if doubtful[row] else found.work[row] for row in range(fit.n)],
        trainings={**found.trainings, **solved.trainings},
        errors=found.errors or solved.errors,
    )
    exact = solved.exact and not (mixed.decided == ESTIMATE).any()
    return _result(fit, mixed, _predictions(fit, mixed), exact=exact, estimates=work)


def _warn_of(errors: list[ValueError], n: int) -> None:
    if len(errors) == n:
        raise errors[0]
    if errors:
        warnings.warn(
            f"{len(errors)} of {n} rows cannot be left out, and have no prediction. The first "
            f"error: {errors[0]}",
            FitFailedWarning,
            stacklevel=4,
        )


def _lose(fit: LeaveOneOutFit, tables: Rules, found: LeftOutRows) -> None:
    for number, (problem, table) in enumerate(zip(fit.whole.problems, tables, strict=True)):
        rows = problem.rows[table == SOLVER]
        found.values[rows, number] = found.reached[rows, number] = np.nan
        found.signs[rows, number] = -problem.linear[table == SOLVER]


def _predictions(fit: LeaveOneOutFit, found: LeftOutRows) -> NDArray[Any]:
    """In the order of the problems."""
    machine, whole = fit.machine, fit.whole
    if not isinstance(machine, KernelClassifier):
        return found.values[:, 0].copy()
    assert isinstance(whole, ClassTraining)
    predictions = machine._labels(_turned(found.signs, fit.n_classes), whole.classes)
    for row, training in found.trainings.items():
        assert isinstance(training, ClassTraining)
        pairs = found.signs[[row]][:, ~np.isnan(found.signs[row])]
        n_classes = len(training.classes)
        [predictions[row]] = machine._labels(_turned(pairs, n_classes), training.classes)
    if found.errors:
        predictions = predictions.astype(object)
        predictions[found.decided == FAILED] = None
    return predictions


def _turned(values: Floats, n_classes: int) -> Floats:
    """As scikit-learn has them: of two classes the second is the positive one."""
    return 0.0 - values if n_classes == 2 else values  # no negative zeros


def _result(
    fit: LeaveOneOutFit,
    found: LeftOutRows,
    predictions: NDArray[Any],
    *,
    exact: bool,
    estimates: FoldWork | None = None,
    refiner: Callable[[], LooResult] | None = None,
) -> LooResult:
    order = np.empty(fit.n, dtype=np.intp)  # back to the rows as they were given
    order[fit.whole.order] = np.arange(fit.n)
    if found.is_estimate:
        work, n_iter = found.work, np.zeros(fit.n, dtype=np.int64)
    else:
        work = [found.work[row] for row in order]
        n_iter = np.array([of_row.n_iter for of_row in work])
    decided_by = RULES[found.decided[order]]
    values, full = (_decision_values(fit, pairs)[order] for pairs in (found.values, fit.full))
    own = OwnValues(values, full)
    if fit.n_classes > 2 or found.reached is not found.values:
        own = OwnValues(_own(fit, found.reached)[order], _own(fit, fit.full)[order])
    return LooResult(
        y=fit.y,
        predictions=predictions[order],
        decision_values=values,
        full_values=full,
        decided_by=decided_by,
        n_iter=n_iter,
        exact=exact,
        classifies=isinstance(fit.machine, KernelClassifier),
        ledger=LooLedger(fit.full_work, work, decided_by, estimates),
        own_values=own,
        refiner=refiner,
    )


def _decision_values(fit: LeaveOneOutFit, values: Floats) -> Floats:
    """In the layout of the estimator's ``decision_function``; NaN where a pair is not known."""
    if fit.n_classes <= 2:
        return _turned(values, fit.n_classes).ravel()
    known = ~np.isnan(values).any(axis=1, keepdims=True)
    if getattr(fit.machine, "decision_function_shape", None) == "ovr":
        values = class_values(np.where(known, values, 0.0), fit.n_classes)
    return np.where(known, values, np.nan)


def _own(fit: LeaveOneOutFit, values: Floats) -> Floats:
    """One value a row: of more than two classes the smallest of the pairs of its own class."""
    if fit.n_classes <= 2:
        return _turned(values, fit.n_classes).ravel()
    smallest = np.full(fit.n, np.inf)
    for number, (i, j) in enumerate(class_pairs(fit.n_classes)):
        for k, side in ((i, 1.0), (j, -1.0)):
            rows = slice(fit.whole.starts[k], fit.whole.starts[k + 1])
            smallest[rows] = np.minimum(smallest[rows], side * values[rows, number])
    return smallest
