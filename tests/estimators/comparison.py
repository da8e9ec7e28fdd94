"""Compares fitted models with scikit-learn's and with the naive oracle.

Only what is unique is compared: the dual objective, the KKT gap, the values of the functions and
the predictions that follow from them; never the set of support vectors. How far two correct solvers
may be apart follows from ``tol``, and is computed in ``naive.tolerance``.
"""

import warnings
from dataclasses import dataclass, replace
from functools import cached_property

import naive
import numpy as np
from sklearn import svm
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.class_weight import compute_class_weight
from strategies import TOL

import onefit

# LIBSVM cycles for ever on some problems at this tolerance, where float32 kernel entries make a
# curvature negative that is zero in truth. A limit ends the cycle.
MAX_ITER = 2_000_000

# What parameters are where a problem does not say: scikit-learn's defaults, but for ``tol``.
DEFAULTS = {
    "kernel": "rbf",
    "gamma": "scale",
    "coef0": 0.0,
    "degree": 3,
    "C": 1.0,
    "epsilon": 0.1,
    "nu": 0.5,
    "tol": TOL,
}


@dataclass(frozen=True)
class Part:
    """One dual problem that a model claims to have solved, and the function that it got from it.

    The function is Σ coef k(row, x) + intercept. It is that of the dual, or, where there is a
    ``scale`` (the margin ρ of ν-SVC), that of the dual divided by it.
    """

    rows: np.ndarray
    dual: naive.Dual
    beta: np.ndarray
    coef: np.ndarray
    intercept: float
    tol: float
    offsets: np.ndarray | None  # of the dual's groups; None where scikit-learn does not tell
    scale: float | None = None

    @property
    def gap_tolerance(self):
        return naive.gap_tolerance(self.dual, self.beta, self.tol)


# --------------------------------------------------------------------------------- fitted models


def kernel_matrix(problem, X, Z):
    """The kernel of the problem, evaluated naively."""
    params = {**DEFAULTS, **problem.params}
    options = {name: params[name] for name in ("coef0", "degree")}
    gamma = naive.gamma_value(params["gamma"], problem.X)
    return naive.kernel_matrix(params["kernel"], X, Z, gamma=gamma, **options)


class Fitted:
    """A fitted model beside the dual problems that it claims to have solved, its ``parts``."""

    def __init__(self, model, problem):
        self.model = model
        self.problem = problem
        self.support = model.support_
        self.params = {**DEFAULTS, **problem.params}
        weight = problem.sample_weight
        self.weight = np.ones(len(problem.y)) if weight is None else np.maximum(weight, 0.0)

    def kernel_matrix(self, X, Z):
        return kernel_matrix(self.problem, X, Z)

    @cached_property
    def gram(self):
        return self.kernel_matrix(self.problem.X, self.problem.X)


class FittedClassifier(Fitted):
    """Its parts are the pairs of classes."""

    def __init__(self, model, problem):
        super().__init__(model, problem)
        self.n_classes = len(model.classes_)

    @cached_property
    def parts(self):
        labels = np.searchsorted(np.unique(self.problem.y), self.problem.y)
        arrays = self.model.dual_coef_, self.model.n_support_, self.support
        pairs = naive.unpack_pairs(labels, self.n_classes, *arrays)
        # LIBSVM's sign: positive for the first class of each pair.
        sign = -1.0 if self.n_classes == 2 else 1.0
        intercepts = sign * self.model.intercept_
        return [self.part(p, i) for p, i in zip(pairs, intercepts, strict=True)]

    def values(self, Z):
        """The model's own decision values, one column per pair, positive for the first class."""
        values = self.model.decision_function(Z)
        return -values[:, None] if self.n_classes == 2 else values


class FittedSVC(FittedClassifier):
    @cached_property
    def bound(self):
        y = self.problem.y
        class_weight = compute_class_weight(
            self.params.get("class_weight"), classes=np.unique(y), y=y
        )
        return self.params["C"] * class_weight[np.searchsorted(np.unique(y), y)] * self.weight

    def part(self, pair, intercept):
        K = self.gram[np.ix_(pair.rows, pair.rows)]
        return Part(
            rows=pair.rows,
            dual=naive.c_svc_dual(K, pair.sign, self.bound[pair.rows]),
            beta=pair.beta,
            coef=pair.beta,
            intercept=intercept,
            tol=self.params["tol"],
            offsets=np.array([intercept]),
        )


class FittedNuSVC(FittedClassifier):
    def part(self, pair, intercept):
        K = self.gram[np.ix_(pair.rows, pair.rows)]
        weight, nu = self.weight[pair.rows], self.params["nu"]
        # The sums of the coefficients are fixed before they are divided by ρ: that gives ρ away.
        rho = nu * weight.sum() / np.abs(pair.beta).sum()
        return Part(
            rows=pair.rows,
            dual=naive.nu_svc_dual(K, pair.sign, weight, nu),
            beta=rho * pair.beta,
            coef=pair.beta,
            intercept=intercept,
            tol=self.params["tol"],
            offsets=rho * intercept + np.array([-rho, rho]),
            scale=rho,
        )


class FittedRegressor(Fitted):
    """It has one part."""

    @cached_property
    def coef(self):
        coef = self.model.dual_coef_
        whole = np.zeros(len(self.problem.y))
        whole[self.support] = (coef.toarray() if hasattr(coef, "toarray") else coef)[0]
        return whole

    @cached_property
    def parts(self):
        return [self.part(self.params["C"] * self.weight, self.model.intercept_[0])]

    def values(self, Z):
        return self.model.predict(Z)[:, None]


class FittedSVR(FittedRegressor):
    def part(self, bound, intercept):
        return Part(
            rows=np.arange(len(bound)),
            dual=naive.svr_dual(self.gram, self.problem.y, bound, self.params["epsilon"]),
            beta=self.coef,
            coef=self.coef,
            intercept=intercept,
            tol=self.params["tol"],
            offsets=np.array([intercept]),
        )


class FittedNuSVR(FittedRegressor):
    def part(self, bound, intercept):
        dual = naive.nu_svr_dual(self.gram, self.problem.y, bound, self.params["nu"])
        beta = naive.nu_svr_split(dual, self.coef, intercept)
        tol = self.params["tol"]
        if np.abs(self.coef).sum() < (1 - 1e-9) * np.abs(beta).sum():
            # Some rows have both coefficients, and which is not known. Those that the solver chose
            # are within two gaps of the function; so are those chosen here, from either side.
            tol = 4 * naive.gap_tolerance(dual, beta, tol)
        epsilon = getattr(self.model, "epsilon_", None)
        return Part(
            rows=np.arange(len(bound)),
            dual=dual,
            beta=beta,
            coef=self.coef,
            intercept=intercept,
            tol=tol,
            offsets=None if epsilon is None else intercept + np.array([epsilon, -epsilon]),
        )


# ------------------------------------------------------------------------------------ comparison


def check_is_a_solution(fitted, Z_given=None):
    """What the model says of itself is feasible and optimal, and its values are what it says."""
    Z = fitted.problem.Z
    values = fitted.values(Z if Z_given is None else Z_given)
    K_Z = fitted.kernel_matrix(Z, fitted.problem.X)
    assert fitted.model.fit_status_ == 0
    for part, values_of_part in zip(fitted.parts, values.T, strict=True):
        check_part(part)
        # Values are evaluated in float64: nothing near float32's rounding is left to them.
        K_part = K_Z[:, part.rows]
        np.testing.assert_allclose(
            values_of_part,
            K_part @ part.coef + part.intercept,
            rtol=1e-12,
            atol=1e-12 + 0.01 * naive.rounding(K_part, part.coef),
        )


def check_part(part):
    """Feasible, a KKT gap below the tolerance, and offsets that fit."""
    dual, beta = part.dual, part.beta
    slack = naive.bound_slack(dual)
    assert (beta >= dual.lo - slack).all()
    assert (beta <= dual.hi + slack).all()
    for group in np.unique(dual.groups):
        inside = dual.groups == group
        # A sum kept by adding and taking away drifts by an ulp a step, at most MAX_ITER steps.
        drift = abs(beta[inside].sum() - dual.start[inside].sum())
        assert drift <= 1e-9 * np.abs(beta[inside]).sum()
    assert naive.kkt_gap(dual, beta) <= part.gap_tolerance
    if part.offsets is not None:
        ends = np.sort(naive.offset_interval(dual, beta), axis=0)
        assert (part.offsets >= ends[0] - part.gap_tolerance).all()
        assert (part.offsets <= ends[1] + part.gap_tolerance).all()
        if naive.exactly_on_bounds(dual, beta):
            middle = naive.offset(dual, beta)
            assert (np.abs(part.offsets - middle) <= part.gap_tolerance).all()


def check_same_answers(ours, theirs, Z_given=None):
    """Objectives, values and predictions agree as far as they are unique."""
    Z = theirs.problem.Z
    Z_given = Z if Z_given is None else Z_given
    values_of_ours, values_of_theirs = ours.values(Z_given), theirs.values(Z)
    squared_norms = np.array([theirs.kernel_matrix(z, z)[0, 0] for z in Z[:, None, :]])
    clear = np.ones(len(Z), dtype=bool)
    for k, (part, other) in enumerate(zip(ours.parts, theirs.parts, strict=True)):
        tolerance = naive.tolerance(part.dual, part.beta, other.beta, max(part.tol, other.tol))
        np.testing.assert_allclose(
            naive.objective(part.dual, part.beta),
            naive.objective(part.dual, other.beta),
            rtol=0,
            atol=tolerance.objective,
        )
        # Infinite where the offset is not unique; then nothing is compared for this part.
        if part.scale is None:
            apart = tolerance.of_decisions(squared_norms)
        else:
            apart = tolerance.of_scaled_decisions(squared_norms, part.scale, values_of_theirs[:, k])
        assert (np.abs(values_of_ours[:, k] - values_of_theirs[:, k]) <= apart).all()
        clear &= np.abs(values_of_theirs[:, k]) > apart
    if isinstance(ours, FittedClassifier):
        np.testing.assert_array_equal(
            ours.model.predict(Z_given)[clear], theirs.model.predict(Z)[clear]
        )


@dataclass(frozen=True)
class Pairing:
    """A class of ours and the one of scikit-learn that it replaces."""

    ours: type
    theirs: type
    fitted: type
    negative_weights: bool = True  # whether scikit-learn takes them for zero everywhere

    def fit_ours(self, problem, params=None, X_given=None):
        model = self.ours(**{**self._params(problem), **(params or {})})
        return self._fit(model, problem, problem.X if X_given is None else X_given)

    def fit_theirs(self, problem):
        if problem.sample_weight is not None and not self.negative_weights:
            problem = replace(problem, sample_weight=np.maximum(problem.sample_weight, 0.0))
        fitted = self._fit(self.theirs(**self._params(problem)), problem, problem.X)
        if problem.sample_weight is not None:
            # scikit-learn numbers the support vectors among the rows of positive weight only.
            fitted.support = np.flatnonzero(problem.sample_weight > 0)[fitted.support]
        return fitted

    def check(self, problem, params=None, X_given=None, Z_given=None):
        ours, theirs = self.fit_ours(problem, params, X_given), self.fit_theirs(problem)
        if ours.model.fit_status_ != 0 and theirs.model.fit_status_ != 0:
            return  # beyond what float32 kernel entries allow, for LIBSVM too: nothing to compare
        check_is_a_solution(ours, Z_given)
        if theirs.model.fit_status_ == 0:
            check_same_answers(ours, theirs, Z_given)

    def check_precomputed(self, problem):
        """Ours gets the kernel matrix, theirs the rows."""
        K, K_Z = (kernel_matrix(problem, rows, problem.X) for rows in (problem.X, problem.Z))
        self.check(problem, {"kernel": "precomputed"}, K, K_Z)

    def check_against_naive(self, problem):
        """The same objective as the naive solver, and the same offsets where they are unique."""
        for part in self.fit_ours(problem).parts:
            reference = naive.solve(part.dual, tol=part.tol / 10)
            assert reference.converged
            tolerance = naive.tolerance(part.dual, part.beta, reference.beta, part.tol)
            apart = abs(naive.objective(part.dual, part.beta) - reference.objective)
            assert apart <= tolerance.objective
            assert (np.abs(part.offsets - reference.offset) <= tolerance.offsets).all()

    def _params(self, problem):
        classifies = issubclass(self.fitted, FittedClassifier)
        shape = {"decision_function_shape": "ovo"} if classifies else {}
        return {"tol": TOL, "max_iter": MAX_ITER, **shape, **problem.params}

    def _fit(self, model, problem, X):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return self.fitted(model.fit(X, problem.y, problem.sample_weight), problem)


SVC = Pairing(onefit.SVC, svm.SVC, FittedSVC)
SVR = Pairing(onefit.SVR, svm.SVR, FittedSVR)
# scikit-learn counts negative weights when it looks whether ν is feasible.
NU_SVC = Pairing(onefit.NuSVC, svm.NuSVC, FittedNuSVC, negative_weights=False)
NU_SVR = Pairing(onefit.NuSVR, svm.NuSVR, FittedNuSVR)
