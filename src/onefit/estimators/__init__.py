"""The models as scikit-learn estimators."""

from onefit.estimators.nusvc import NuSVC
from onefit.estimators.nusvr import NuSVR
from onefit.estimators.reduced_kernel import ReducedKernel
from onefit.estimators.smooth_svc import SmoothSVC
from onefit.estimators.smooth_svr import SmoothSVR
from onefit.estimators.svc import SVC
from onefit.estimators.svr import SVR

__all__ = ["SVC", "SVR", "NuSVC", "NuSVR", "ReducedKernel", "SmoothSVC", "SmoothSVR"]
