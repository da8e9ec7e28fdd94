"""ν-support vector classification."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval

from onefit import _core
from onefit.estimators.classification import KernelClassifier
from onefit.kernels import Floats
from onefit.problem import Problem, largest_nu, nu_svc_model, nu_svc_pairs


class NuSVC(KernelClassifier):
    r"""ν-support vector classification: :class:`sklearn.svm.NuSVC`, faster.

    For each pair of classes of n rows it minimises

    .. math::

        \tfrac12 \|w\|^2 - \nu\rho
        + \tfrac1n \sum_i \max(0, \rho - y_i (w^\top \phi(x_i) + b))

    through its dual. ν is given in place of C: at least a share ν of the rows are support vectors,
    and at most a share ν of them lie inside the margin. With the margin ρ that it finds it is the
    C-SVC of C = 1/ρ in LIBSVM's scaling, and that is what the fitted model is:
    ``SVC(C=model.C_[0])`` gives the same decision function. Parameters, fitted attributes and
    results are those of scikit-learn's class; what differs is the time, as in
    :class:`onefit.SVC`.

    Parameters
    ----------
    nu : float, default=0.5
        Share of margin errors at most, and of support vectors at least. In (0, 1], and for each
        pair of classes at most twice the share of the smaller one.
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
    probability : False
        Only False, as in :class:`onefit.SVC`.
    tol : float, default=1e-3
        Stop when the KKT gap is below this; LIBSVM's rule, before the division by ρ.
    cache_size : float or "auto", default="auto"
        Most memory for kernel rows in MB; "auto" is half of what is free.
    class_weight : dict, "balanced" or None, default=None
        Checked and kept, but without effect, as in scikit-learn: ν-SVC has no C to multiply. To
        weigh classes give ``sample_weight``.
    verbose : bool, default=False
        Accepted for compatibility; nothing is ever printed.
    max_iter : int, default=-1
        Most iterations of each pair; -1 is no limit.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        Whether :meth:`decision_function` gives a value for each class or for each pair.
    break_ties : bool, default=False
        Break ties of the votes by the decision values, with "ovr" and more than two classes.
    random_state : int, RandomState instance or None, default=None
        Accepted for compatibility; nothing here is random.
    n_jobs : int or None, default=None
        Threads for the pairs, and for evaluating kernel rows. They share one store of kernel rows.

    Attributes
    ----------
    C_ : ndarray of shape (n_classes * (n_classes - 1) / 2,)
        The C of the C-SVC that each pair is equivalent to: 1 / ``rho_``.
    rho_ : ndarray of shape (n_classes * (n_classes - 1) / 2,)
        The margin of each pair in LIBSVM's scaling, in which the coefficients are at most the
        weights of the rows; ``dual_coef_`` and ``intercept_`` are divided by it.
    classes_ : ndarray of shape (n_classes,)
    class_weight_ : ndarray of shape (n_classes,)
    support_ : ndarray of shape (n_SV,)
        Rows that are support vectors, sorted by class.
    support_vectors_ : {ndarray, sparse matrix} of shape (n_SV, n_features)
        Empty with a precomputed or callable kernel.
    n_support_ : ndarray of shape (n_classes,)
    dual_coef_ : {ndarray, sparse matrix} of shape (n_classes - 1, n_SV)
        Coefficients of the support vectors, in LIBSVM's layout.
    coef_ : {ndarray, sparse matrix} of shape (n_classes * (n_classes - 1) / 2, n_features)
        Weights of the features; "linear" kernel only.
    intercept_ : ndarray of shape (n_classes * (n_classes - 1) / 2,)
    fit_status_ : int
        0 when every pair converged, else 1.
    n_iter_ : ndarray of shape (n_classes * (n_classes - 1) / 2,)
        Iterations of each pair.
    shape_fit_ : tuple of int
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)

    References
    ----------
    Schölkopf, Smola, Williamson & Bartlett, "New support vector algorithms", Neural Computation
    12(5), 2000. Chang & Lin, "Training ν-support vector classifiers: theory and algorithms", Neural
    Computation 13(9), 2001.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import StandardScaler
    >>> from onefit import NuSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = NuSVC(nu=0.1).fit(StandardScaler().fit_transform(X), y)
    >>> model.C_.round(1)
    array([2.4])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **KernelClassifier._parameter_constraints,
        "nu": [Interval(Real, 0.0, 1.0, closed="right")],
    }
    _one_class_left = (
        "specified nu is infeasible: all samples with positive weights belong to the same class, "
        "so that no nu is possible."
    )

    def __init__(
        self,
        *,
        nu: float = 0.5,
        kernel: str | Callable[[Any, Any], Any] = "rbf",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        probability: bool | Literal["deprecated"] = "deprecated",
        tol: float = 1e-3,
        cache_size: float | Literal["auto"] = "auto",
        class_weight: dict[Any, float] | str | None = None,
        verbose: bool = False,
        max_iter: int = -1,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.nu = nu
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.probability = probability
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.verbose = verbose
        self.max_iter = max_iter
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _bounds(self, class_weight: Floats, weights: Floats) -> Floats:
        return weights

    def _pairs(self, starts: list[int], bounds: Floats) -> list[Problem]:
        return nu_svc_pairs(starts, bounds, float(self.nu))

    def _check_totals(self, totals: Floats) -> None:
        smallest, most = totals.min(), totals.max()
        if self.nu * (smallest + most) / 2 > smallest:
            largest = largest_nu(totals)
            digits = 10.0 ** (5 - math.floor(math.log10(largest)))
            possible = math.floor(largest * digits) / digits  # never rounded up
            raise ValueError(
                f"specified nu is infeasible: nu={self.nu}, but at most {possible} is possible "
                f"with these classes: the smallest has {smallest:g} samples (or their weights), "
                f"the largest {most:g}, and nu times half of both must not exceed the "
                "smallest."
            )

    def _pair_models(
        self, solutions: list[_core.Solution]
    ) -> tuple[list[Floats], list[float], dict[str, Any]]:
        models = [nu_svc_model(solution, self.tol) for solution in solutions]
        if any(
            solution.status == _core.Status.converged and not model.has_margin
            for solution, model in zip(solutions, models, strict=True)
        ):
            warnings.warn(
                f"A pair of classes has no margin with nu={self.nu} (as far as tol={self.tol:g} "
                "can tell): its decision function is hardly determined. A larger nu may leave a "
                "margin, unless the rows of the classes coincide.",
                ConvergenceWarning,
                stacklevel=5,
            )
        rho = np.array([model.rho for model in models])
        return (
            [model.beta for model in models],
            [model.intercept for model in models],
            {"C_": 1 / rho, "rho_": rho},
        )
