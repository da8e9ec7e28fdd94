"""scikit-learn-intelex (oneDAL): its classes are used directly, nothing is patched.

The number of threads is its parameter ``n_jobs``: with it, CPU time over wall time was 1.0 for one
thread and 1.9 for two. Without it, it follows the OpenMP limit that threadpoolctl finds, although
it computes with TBB.
"""

from __future__ import annotations

from .base import SklearnFaced


class Intelex(SklearnFaced):
    name = "intelex"
    module = "sklearnex.svm"
    packages = ("scikit-learn-intelex",)


RIVAL = Intelex()
