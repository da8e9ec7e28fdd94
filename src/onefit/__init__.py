"""Support vector machines with the answers of scikit-learn's in a fraction of the time.

The estimators take the place of scikit-learn's: same parameters, same fitted attributes, same
answers.
"""

from onefit.estimators import SVC, SVR, NuSVC, NuSVR, ReducedKernel, SmoothSVC, SmoothSVR
from onefit.model_selection import (
    cross_val_predict,
    cross_val_score,
    cross_validate,
    leave_one_out,
)
from onefit.tuning import GridSearchCV, RandomizedSearchCV

__version__ = "0.1.0"

__all__ = [
    "SVC",
    "SVR",
    "GridSearchCV",
    "NuSVC",
    "NuSVR",
    "RandomizedSearchCV",
    "ReducedKernel",
    "SmoothSVC",
    "SmoothSVR",
    "__version__",
    "cross_val_predict",
    "cross_val_score",
    "cross_validate",
    "leave_one_out",
]
