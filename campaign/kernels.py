"""Kernel functions as a user writes them, for cases with callable kernels."""

from __future__ import annotations

import numpy as np

NAMES = ("of_user",)


def of_user(A, B):
    """A sum of two kernels that scikit-learn has no name for."""
    A, B = (M.toarray() if hasattr(M, "toarray") else np.asarray(M) for M in (A, B))
    A, B = A.astype(np.float64), B.astype(np.float64)
    return A @ B.T / A.shape[1] + 1.0 / (1.0 + ((A[:, None, :] - B[None, :, :]) ** 2).sum(axis=2))
