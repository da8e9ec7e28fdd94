"""Kernel functions as a user writes them, for cases with callable kernels."""

from __future__ import annotations

import numpy as np

NAMES = ("of_user", "rowwise_rbf")


def of_user(A, B):
    """A sum of two kernels that scikit-learn has no name for."""
    A, B = (M.toarray() if hasattr(M, "toarray") else np.asarray(M) for M in (A, B))
    A, B = A.astype(np.float64), B.astype(np.float64)
    return A @ B.T / A.shape[1] + 1.0 / (1.0 + ((A[:, None, :] - B[None, :, :]) ** 2).sum(axis=2))


def rowwise_rbf(A, B):
    """An RBF kernel whose entries depend on the two rows alone, to the last bit."""
    A, B = (M.toarray() if hasattr(M, "toarray") else np.asarray(M) for M in (A, B))
    A, B = A.astype(np.float64), B.astype(np.float64)
    return np.exp(
        -0.3 * np.array([[((a - b) ** 2).sum() for b in B] for a in A]).reshape(len(A), len(B))
    )
