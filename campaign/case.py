"""A case: the data, the model and the options that one comparison is made of."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp


class Difference(AssertionError):  # noqa: N818 - a finding, not an error of the campaign
    """onefit and what it is compared with differ, and it is no tie.

    ``kind`` is a short name. A reduced case must fail with the same one.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind


class NothingToCompareError(Exception):
    """There is no right answer to compare with, as where scikit-learn does not converge."""


@dataclass(frozen=True)
class Case:
    """Rows ``X`` with targets ``y``, a model with its parameters, and the options of the class.

    ``X`` is dense; ``options["layout"]`` says how it is given. An option or parameter that is
    absent has its default, so that a case gets simpler by removing entries.
    """

    name: str
    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray | None = None
    model: str = "SVC"
    params: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        return self.name.split(":")[0]

    @property
    def classifies(self) -> bool:
        return self.model.endswith("SVC")

    @property
    def given(self) -> Any:
        """X as the model gets it."""
        return laid_out(self.X, self.options.get("layout", "dense"))


def generator(name: str) -> np.random.Generator:
    """The generator of the case ``class:seed:number``: the same case whenever it is drawn."""
    kind, seed, number = name.split(":")
    return np.random.default_rng([int(seed), zlib.crc32(kind.encode()), int(number)])


LAYOUTS = {
    "dense": "X",
    "float32": "X.astype(np.float32)",
    "Fortran order": "np.asfortranarray(X)",
    "every second row": "np.repeat(X, 2, axis=0)[::2]",
    "csr": "sp.csr_matrix(X)",
    "csr array": "sp.csr_array(X)",
    "csc": "sp.csc_matrix(X)",
    "coo": "sp.coo_array(X)",
    "csr float32": "sp.csr_matrix(X.astype(np.float32))",
    "csr int64": "int64_indices(X)",
}


def int64_indices(X):
    X = sp.csr_matrix(X)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def laid_out(X: np.ndarray, layout: str) -> Any:
    names = {"X": X, "np": np, "sp": sp, "int64_indices": int64_indices}
    return eval(LAYOUTS[layout], names)  # one of the above, which snippets print
