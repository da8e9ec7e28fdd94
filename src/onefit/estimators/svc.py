"""C-support vector classification."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.utils._param_validation import Interval

from onefit import _core
from onefit.estimators.classification import KernelClassifier
from onefit.kernels import Floats
from onefit.problem import Problem, bounds_of_rows


class SVC(KernelClassifier):
    r"""C-support vector classification: :class:`sklearn.svm.SVC`, faster.

    For each pair of classes it minimises

    .. math:: \tfrac12 \|w\|^2 + \sum_i C_i \max(0, 1 - y_i (w^\top \phi(x_i) + b))

    through its dual. Parameters, fitted attributes and results are those of scikit-learn's class;
    what differs is the time. Kernel rows are evaluated in batches when first needed, shared by all
    pairs, and kept in float32; the solver updates the gradient and picks its next step in one
    vectorised pass; what was accumulated in float32 is computed again in double precision before a
    fit counts as converged.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the errors, larger is less regularised. Positive.
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
        Only False. For probabilities wrap the estimator in
        :class:`sklearn.calibration.CalibratedClassifierCV`.
    tol : float, default=1e-3
        Stop when the KKT gap is below this; LIBSVM's rule.
    cache_size : float or "auto", default="auto"
        Most memory for kernel rows in MB; "auto" is half of what is free. It is taken as it pays:
        a kernel that does not fit, or whose rows are faster to evaluate than memory is to get, is
        kept in part, and the least recently used rows are evaluated again.
    class_weight : dict, "balanced" or None, default=None
        Factors on C for each class.
    verbose : bool, default=False
        Accepted for compatibility; nothing is ever printed.
    max_iter : int, default=-1
        Limit on the iterations of each pair, -1 for none.
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
    classes_ : ndarray of shape (n_classes,)
    class_weight_ : ndarray of shape (n_classes,)
        Factors on C.
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
    Fan, Chen & Lin, "Working set selection using second order information for training support
    vector machines", JMLR 6, 2005. Chang & Lin, "LIBSVM: a library for support vector machines",
    ACM TIST 2(3), 2011.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import StandardScaler
    >>> from onefit import SVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = SVC(C=10).fit(StandardScaler().fit_transform(X), y)
    >>> model.n_support_
    array([43, 50], dtype=int32)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **KernelClassifier._parameter_constraints,
        "C": [Interval(Real, 0.0, None, closed="right")],
    }

    def __init__(
        self,
        *,
        C: float = 1.0,
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
        self.C = C
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
        return bounds_of_rows(self.C, class_weight * weights)

    def _pairs(self, starts: list[int], bounds: Floats) -> list[Problem]:
        pairs: list[Problem] = _core.c_svc_pairs(starts, bounds)
        return pairs
