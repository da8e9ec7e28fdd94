"""The models as scikit-learn estimators."""

from onefit.estimators.svc import SVC

__all__ = ["SVC"]
