"""LIBSVM's own Python package.

Dense rows go in as CSR: its loop over dense rows is Python and would dominate the time. LIBSVM
stores sparse rows in any case. The conversion is timed, as it is for every other rival.

Its kernel rows are evaluated with OpenMP, so the limit that the runner sets is the number of
threads it uses. It waits for all of them at every row: on a busy machine its times spread widely.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from ..case import Case, Matrix, Settings
from ..dual import Pair, pairs_of
from .base import Rival


class Libsvm(Rival):
    name = "libsvm"
    module = "libsvm.svmutil"
    packages = ("libsvm-official",)

    def fit(self, case: Case, settings: Settings) -> Any:
        from libsvm.svmutil import svm_train

        # 17 digits: the options travel as text and must arrive as the same numbers.
        options = (
            f"-s 0 -t 2 -q -c {case.C:.17g} -g {case.gamma:.17g}"
            f" -e {settings.tol:.17g} -m {settings.rival_memory_mb:g}"
        )
        return svm_train(case.y.astype(float), csr_matrix(case.X), options)

    def labels(self, model: Any, X: Matrix) -> NDArray[np.int64]:
        from libsvm.svmutil import svm_predict

        labels, _, _ = svm_predict([], csr_matrix(X), model, "-q")
        return np.asarray(labels).astype(np.int64)

    def pairs(self, model: Any) -> list[Pair]:
        k, n_sv = model.get_nr_class(), model.get_nr_sv()
        return pairs_of(
            np.array(model.get_labels()),  # in order of first appearance, not sorted
            np.array(model.get_sv_indices()) - 1,
            np.array(model.nSV[:k]),
            np.array(model.get_sv_coef()).reshape(n_sv, k - 1).T,
            -np.array(model.rho[: k * (k - 1) // 2]),
        )


RIVAL = Libsvm()
