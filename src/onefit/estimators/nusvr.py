"""ν-support vector regression."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.utils._param_validation import Interval

from onefit import _core
from onefit.estimators.regression import KernelRegressor
from onefit.kernels import Floats
from onefit.problem import Problem, nu_svr, nu_svr_model


class NuSVR(KernelRegressor):
    r"""ν-support vector regression: :class:`sklearn.svm.NuSVR`, faster.

    On n rows it minimises, over the width of the tube as well,

    .. math::

        \tfrac12 \|w\|^2 + C \Big(n \nu \epsilon
        + \sum_i \max(0, |y_i - w^\top \phi(x_i) - b| - \epsilon)\Big)

    through its dual. ν is given in place of ε: at most a share ν of the rows lie outside of the
    tube, and at least a share ν of them are support vectors. With the ε that it finds it is an
    ε-SVR: ``SVR(C=C, epsilon=model.epsilon_)`` gives the same function. Parameters, fitted
    attributes and results are those of scikit-learn's class; what differs is the time, as in
    :class:`onefit.SVC`.

    Parameters
    ----------
    nu : float, default=0.5
        Share of the rows outside of the tube at most, and of support vectors at least. In (0, 1].
    C : float, default=1.0
        Weight of the errors, larger is less regularised. Positive and finite.
    kernel : {"linear", "poly", "rbf", "sigmoid", "precomputed"} or callable, default="rbf"
        A callable takes two sets of rows and returns the matrix of kernel values.
    degree : int, default=3
        Degree of "poly".
    gamma : {"scale", "auto"} or float, default="scale"
        Coefficient of "rbf", "poly" and "sigmoid"; "scale" is 1 / (n_features * X.var()), "auto" is
        1 / n_features.
    coef0 : float, default=0.0
        Constant of "poly" and "sigmoid".
    shrinking : bool, default=True
        Set aside, while solving, variables that stay at their bounds.
    tol : float, default=1e-3
        Stop when the KKT gap, in units of y, is below this; LIBSVM's rule.
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
    epsilon_ : float
        The ε of the ε-SVR, with the same C, that the model is equivalent to.
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
    Schölkopf, Smola, Williamson & Bartlett, "New support vector algorithms", Neural Computation
    12(5), 2000. Chang & Lin, "Training ν-support vector regression: theory and algorithms", Neural
    Computation 14(8), 2002.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from onefit import NuSVR
    >>> X, y = load_diabetes(return_X_y=True)
    >>> round(NuSVR(nu=0.3, C=100).fit(X, y).epsilon_)
    50
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **KernelRegressor._parameter_constraints,
        "C": [Interval(Real, 0.0, None, closed="neither")],
        "nu": [Interval(Real, 0.0, 1.0, closed="right")],
    }

    def __init__(
        self,
        *,
        nu: float = 0.5,
        C: float = 1.0,
        kernel: str | Callable[[Any, Any], Any] = "rbf",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        tol: float = 1e-3,
        cache_size: float | Literal["auto"] = "auto",
        verbose: bool = False,
        max_iter: int = -1,
        n_jobs: int | None = None,
    ) -> None:
        self.nu = nu
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.tol = tol
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.n_jobs = n_jobs

    def _bounds(self, weights: Floats) -> Floats:
        bounds: Floats = float(self.C) * weights
        if not np.isfinite(bounds.sum()):
            raise ValueError(
                f"C={self.C} times the weights of the samples overflows; NuSVR needs a finite C."
            )
        return bounds

    def _problem(self, y: Floats, bounds: Floats) -> Problem:
        return nu_svr(y, bounds, float(self.nu))

    def _function(self, solution: _core.Solution) -> tuple[Floats, float, dict[str, Any]]:
        beta, intercept, epsilon = nu_svr_model(solution)
        return beta, intercept, {"epsilon_": epsilon}
