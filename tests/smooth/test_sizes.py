"""Which systems are formed, by their sizes, and what does not fit."""

import numpy as np
import pytest

from onefit import SmoothSVC, SmoothSVR, cross_val_score
from onefit.smooth.design import EvaluatedDesign
from onefit.smooth.systems import (
    CheapestSystem,
    DualSystem,
    IterativeSystem,
    PrimalSystem,
    make_system,
)
from smooth.problems import classes, numbers

GIGABYTE = 1 << 30


def design(n, features):
    def never(rows):
        raise AssertionError("no kernel value is asked for")

    return EvaluatedDesign(n, features, never)


@pytest.mark.parametrize("n", [10_000, 2_090_000, 2_200_000, 3_000_000])
def test_costs_of_many_rows(n):
    curvatures = np.ones(n)
    primal, dual = PrimalSystem(design(n, 400)), DualSystem(design(n, 400))
    assert 0 < primal.cost(curvatures) < dual.cost(curvatures)
    assert dual.cost(curvatures) == pytest.approx(float(n) ** 2 * 401 + float(n) ** 3 / 3)
    few = np.where(np.arange(n) < 100, 1.0, 0.0)
    assert dual.cost(few) < primal.cost(few)


def test_systems_that_do_not_fit_are_not_formed():
    tall, wide = design(3_000_000, 400), design(400, 3_000_000)
    assert isinstance(make_system("auto", tall, GIGABYTE), CheapestSystem)
    assert isinstance(make_system("auto", wide, GIGABYTE), CheapestSystem)
    assert isinstance(make_system("inverse", tall, GIGABYTE), PrimalSystem)
    assert isinstance(make_system("dual", wide, GIGABYTE), DualSystem)
    assert isinstance(make_system("dual", tall, GIGABYTE), IterativeSystem)
    assert isinstance(make_system("inverse", wide, GIGABYTE), IterativeSystem)
    assert isinstance(make_system("auto", design(10**5, 10**5), GIGABYTE), IterativeSystem)


@pytest.mark.parametrize("machine", [SmoothSVC(), SmoothSVR(), SmoothSVC(kernel="precomputed")])
@pytest.mark.parametrize("n", [100, 1_672, 1_673, 2_290, 2_896, 2_897, 10_000])
def test_a_full_kernel_that_fits(machine, n, monkeypatch):
    """24 n² bytes of 8 GB are no reason to give up, whatever n is."""
    from onefit import memory
    from onefit.estimators.smooth import bytes_of_fit

    monkeypatch.setattr(memory, "available_bytes", lambda: 8 * GIGABYTE)
    budget = memory.budget_for("auto", bytes_of_fit("auto", n, n, True))
    machine._check_size(n, np.arange(n), budget)
    monkeypatch.setattr(memory, "available_bytes", lambda: 100 << 20)
    budget = memory.budget_for("auto", bytes_of_fit("auto", n, n, True))
    if n <= 1_672:  # what every computer can spare
        machine._check_size(n, np.arange(n), budget)
    else:
        with pytest.raises(MemoryError, match=f"A kernel of {n} rows"):
            machine._check_size(n, np.arange(n), budget)


@pytest.mark.parametrize("n", [1_700, 2_900])
def test_full_kernels_of_some_thousand_rows(n):
    X, y = classes(n=n)
    model = SmoothSVC(gamma=0.2, loss="squared").fit(X, y == "b")
    assert model.dual_coef_.shape == (1, n)
    if n < 2_000:
        assert cross_val_score(SmoothSVC(gamma=0.2), X, y, cv=2).mean() > 0.7
        X, y = numbers(n=n)
        SmoothSVR(kernel="precomputed", loss="squared").fit(X @ X.T, y)
