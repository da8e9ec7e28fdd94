"""Slow and obvious smooth machines: the objective written down, and plain Newton steps on it."""

import numpy as np
from sklearn.metrics.pairwise import pairwise_kernels


def phi_of(machine, X, Z=None):
    """Features, or kernel values with the rows Z."""
    dense = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=float)
    if Z is None:
        return dense
    Z = np.asarray(Z.toarray() if hasattr(Z, "toarray") else Z, dtype=float)
    known = {"gamma": machine.gamma, "coef0": machine.coef0, "degree": machine.degree}
    return pairwise_kernels(dense, Z, metric=machine.kernel, filter_params=True, **known)


def losses(machine, f, y):
    """Value, slope and curvature of the loss of each row."""
    if machine.loss == "squared":
        return 0.5 * (f - y) ** 2, f - y, np.ones_like(f)
    if hasattr(machine, "epsilon"):
        above = _squared_plus(f - y - machine.epsilon, machine.beta)
        below = _squared_plus(y - f - machine.epsilon, machine.beta)
        return above[0] + below[0], above[1] - below[1], above[2] + below[2]
    value, slope, curvature = _squared_plus(1 - y * f, machine.beta)
    return value, -y * slope, curvature


def _squared_plus(x, beta):
    if beta is None:
        return 0.5 * np.maximum(x, 0) ** 2, np.maximum(x, 0), (x > 0).astype(float)
    p = x + np.logaddexp(0, -beta * x) / beta
    first = 1 / (1 + np.exp(-beta * x))
    second = beta * first * (1 - first)
    return 0.5 * p**2, p * first, first**2 + p * second


def objective(machine, theta, phi, y, c):
    A = np.column_stack([np.full(len(phi), machine.intercept_scaling), phi])
    return 0.5 * theta @ theta + c @ losses(machine, A @ theta, y)[0]


def gradient(machine, theta, phi, y, c):
    A = np.column_stack([np.full(len(phi), machine.intercept_scaling), phi])
    return theta + A.T @ (c * losses(machine, A @ theta, y)[1])


def fit(machine, phi, y, c):
    """The minimum, intercept first, by Newton steps that are halved until they bring something."""
    A = np.column_stack([np.full(len(phi), machine.intercept_scaling), phi])
    theta = np.zeros(A.shape[1])
    for _ in range(200):
        _, slope, curvature = losses(machine, A @ theta, y)
        grad = theta + A.T @ (c * slope)
        if np.linalg.norm(grad) < 1e-11 * max(1, np.linalg.norm(theta)):
            break
        step = np.linalg.solve(np.eye(len(theta)) + (A.T * (c * curvature)) @ A, -grad)
        before, share = objective(machine, theta, phi, y, c), 1.0
        while share > 1e-6 and objective(machine, theta + share * step, phi, y, c) > before:
            share /= 2
        theta = theta + share * step
    return theta
