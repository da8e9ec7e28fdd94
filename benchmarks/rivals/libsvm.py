"""LIBSVM's own Python package.

Dense rows go in as CSR: its loop over dense rows is Python and would dominate the time. LIBSVM
stores sparse rows in any case. The conversion is timed, as it is for every other rival.

Its kernel rows are evaluated with OpenMP, so the limit that the runner sets is the number of
threads it uses. It waits for all of them at every row: on a busy machine its times spread widely.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from ..case import Case, Matrix, Settings
from ..dual import Pair, one_function, pairs_of
from .base import Rival

TYPES = {"c-svc": 0, "nu-svc": 1, "svr": 3, "nu-svr": 4}
OPTIONS = {"C": "-c", "nu": "-n", "epsilon": "-p"}


class Libsvm(Rival):
    name = "libsvm"
    module = "libsvm.svmutil"
    packages = ("libsvm-official",)

    def fit(self, case: Case, settings: Settings) -> Any:
        from libsvm.svmutil import svm_train

        # 17 digits: the options travel as text and must arrive as the same numbers.
        own = " ".join(f"{OPTIONS[name]} {value:.17g}" for name, value in case.parameters.items())
        options = (
            f"-s {TYPES[case.machine.name]} {own} -t 2 -q -g {case.gamma:.17g}"
            f" -e {settings.tol:.17g} -m {settings.rival_memory_mb:g}"
        )
        return svm_train(case.y.astype(float), csr_matrix(case.X), options)

    def predictions(self, model: Any, case: Case, X: Matrix) -> NDArray[Any]:
        from libsvm.svm import gen_svm_nodearray, libsvm

        # Its own svm_predict keeps room for one decision value of a nu-SVC, and writes all of them.
        X = csr_matrix(X)
        parts = [slice(*ends) for ends in pairwise(X.indptr)]
        nodes = [gen_svm_nodearray((X.indices[part], X.data[part]))[0] for part in parts]
        found = [libsvm.svm_predict(model, row) for row in nodes]
        return np.asarray(found).astype(case.y.dtype)

    def pairs(self, model: Any, case: Case) -> list[Pair]:
        k, n_sv = model.get_nr_class(), model.get_nr_sv()
        support = np.array(model.get_sv_indices()) - 1
        coef = np.array(model.get_sv_coef()).reshape(n_sv, k - 1).T
        if case.machine.regression:
            return one_function(support, coef, -model.rho[0])
        return pairs_of(
            np.array(model.get_labels()),  # in order of first appearance, not sorted
            support,
            np.array(model.nSV[:k]),
            coef,
            -np.array(model.rho[: k * (k - 1) // 2]),
        )


RIVAL = Libsvm()
