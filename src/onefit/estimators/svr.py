"""ε-support vector regression."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar, Literal

from sklearn.utils._param_validation import Interval

from onefit import _core
from onefit.estimators.regression import LARGEST_TARGET, KernelRegressor
from onefit.kernels import Floats
from onefit.problem import Problem, bounds_of_rows, epsilon_svr, unit_of_tube


class SVR(KernelRegressor):
    r"""ε-support vector regression: :class:`sklearn.svm.SVR`, faster.

    It minimises

    .. math:: \tfrac12 \|w\|^2 + \sum_i C_i \max(0, |y_i - w^\top \phi(x_i) - b| - \epsilon)

    through its dual, in one variable for each row: a row is above the tube or below it, never both,
    so that :math:`\epsilon \|\beta\|_1` takes the place of the second variable of the usual form.
    Parameters, fitted attributes and results are those of scikit-learn's class; what differs is the
    time, as in :class:`onefit.SVC`.

    Parameters
    ----------
    kernel : {"linear", "poly", "rbf", "sigmoid", "precomputed"} or callable, default="rbf"
        A callable takes two sets of rows and returns the matrix of kernel values.
    degree : int, default=3
        Degree of "poly".
    gamma : {"scale", "auto"} or float, default="scale"
        Coefficient of "rbf", "poly" and "sigmoid"; "scale" is 1 / (n_features * X.var()), "auto" is
        1 / n_features.
    coef0 : float, default=0.0
        Constant of "poly" and "sigmoid".
    tol : float, default=1e-3
        Stop when the KKT gap, in units of y, is below this; LIBSVM's rule.
    C : float, default=1.0
        Weight of the errors, larger is less regularised. Positive.
    epsilon : float, default=0.1
        Half the width of the tube in which errors do not count. In units of y, 0 or more.
    shrinking : bool, default=True
        Set aside, while solving, variables that stay at their bounds or at 0.
    cache_size : float or "auto", default="auto"
        Most memory for kernel rows in MB; "auto" is half of what is free.
    verbose : bool, default=False
        Accepted for compatibility; nothing is ever printed.
    max_iter : int, default=-1
        Most iterations; -1 is no limit.
    n_jobs : int or None, default=None
        Threads for evaluating kernel rows.

    Attributes
    ----------
    support_ : ndarray of shape (n_SV,)
        Rows that are support vectors.
    support_vectors_ : {ndarray, sparse matrix} of shape (n_SV, n_features)
        Empty with a precomputed or callable kernel.
    n_support_ : ndarray of shape (1,)
    dual_coef_ : {ndarray, sparse matrix} of shape (1, n_SV)
    coef_ : {ndarray, sparse matrix} of shape (1, n_features)
        Weights of the features; "linear" kernel only.
    intercept_ : ndarray of shape (1,)
    fit_status_ : int
        0 when the fit converged, else 1.
    n_iter_ : int
    shape_fit_ : tuple of int
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)

    References
    ----------
    Smola & Schölkopf, "A tutorial on support vector regression", Statistics and Computing 14, 2004.
    Chang & Lin, "LIBSVM: a library for support vector machines", ACM TIST 2(3), 2011.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from onefit import SVR
    >>> X, y = load_diabetes(return_X_y=True)
    >>> round(SVR(C=100).fit(X, y).score(X, y), 2)
    0.67
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **KernelRegressor._parameter_constraints,
        "C": [Interval(Real, 0.0, None, closed="right")],
        "epsilon": [Interval(Real, 0.0, LARGEST_TARGET, closed="both")],
    }

    def __init__(
        self,
        *,
        kernel: str | Callable[[Any, Any], Any] = "rbf",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        C: float = 1.0,
        epsilon: float = 0.1,
        shrinking: bool = True,
        cache_size: float | Literal["auto"] = "auto",
        verbose: bool = False,
        max_iter: int = -1,
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.C = C
        self.epsilon = epsilon
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.n_jobs = n_jobs

    def _bounds(self, weights: Floats) -> Floats:
        return bounds_of_rows(self.C / self._unit, weights)

    def _problem(self, y: Floats, bounds: Floats) -> Problem:
        return epsilon_svr(y, bounds, float(self.epsilon), self._unit)

    def _function(self, solution: _core.Solution) -> tuple[Floats, float, dict[str, Any]]:
        return solution.beta * self._unit, solution.offset * self._unit, {}

    @property
    def _unit(self) -> float:
        if self.epsilon > LARGEST_TARGET:
            raise ValueError(f"epsilon={self.epsilon} is too large; at most {LARGEST_TARGET:g}.")
        return unit_of_tube(float(self.epsilon), float(self.tol))
