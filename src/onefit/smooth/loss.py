r"""Losses of a smooth machine, as functions of its values.

A machine minimises :math:`\tfrac12\|\theta\|^2 + \sum_i c_i \varphi(f_i, y_i)` with the values
:math:`f = A\theta`. Of a loss it needs :math:`\varphi` and its first two derivatives in f:

- squared hinge: :math:`\tfrac12 (1 - y f)_+^2`, the smooth SVM in the limit β → ∞;
- its smooth form :math:`\tfrac12 p(1 - y f, \beta)^2`, :math:`p(x, \beta) = x + \log(1 +
  e^{-\beta x}) / \beta`, whose second derivative is continuous;
- squared: :math:`\tfrac12 (f - y)^2`, the least-squares SVM;
- squared ε-insensitive: :math:`\tfrac12 (|f - y| - \varepsilon)_+^2`, and its smooth form
  :math:`\tfrac12 p(f - y - \varepsilon, \beta)^2 + \tfrac12 p(y - f - \varepsilon, \beta)^2`.

All but the smooth forms are pieces of quadratic functions. As long as every row stays on its piece,
one Newton step is exact: this is what updates of a fit live from.

Lee & Mangasarian, "SSVM: A smooth support vector machine", Computational Optimization and
Applications 20(1), 2001; Lee, Hsieh & Huang, "ε-SSVR", IEEE TKDE 17(5), 2005.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from onefit.kernels import Floats


class Derivatives(NamedTuple):
    """Of a loss at every row."""

    value: Floats
    slope: Floats
    curvature: Floats


class Loss(ABC):
    """A convex function of the value and the target of a row."""

    piecewise = True  # a quadratic function in each of its pieces

    @abstractmethod
    def at(self, f: Floats, y: Floats) -> Derivatives:
        """The loss and its derivatives."""

    def value(self, f: Floats, y: Floats) -> Floats:
        return self.at(f, y).value

    @abstractmethod
    def piece(self, f: Floats, y: Floats) -> NDArray[np.int8]:
        """Which quadratic piece each row is on. (Of a smooth form: on which it nearly is.)"""


@dataclass(frozen=True)
class SquaredHinge(Loss):
    def at(self, f: Floats, y: Floats) -> Derivatives:
        slack = np.maximum(1.0 - y * f, 0.0)
        return Derivatives(0.5 * slack * slack, -y * slack, (slack > 0).astype(np.float64))

    def value(self, f: Floats, y: Floats) -> Floats:
        slack = np.maximum(1.0 - y * f, 0.0)
        return np.asarray(0.5 * slack * slack)

    def piece(self, f: Floats, y: Floats) -> NDArray[np.int8]:
        return (y * f < 1.0).astype(np.int8)


@dataclass(frozen=True)
class SmoothHinge(Loss):
    beta: float
    piecewise = False

    def at(self, f: Floats, y: Floats) -> Derivatives:
        p, first, second = _smooth_plus(1.0 - y * f, self.beta)
        return Derivatives(0.5 * p * p, -y * p * first, first * first + p * second)

    def piece(self, f: Floats, y: Floats) -> NDArray[np.int8]:
        return (y * f < 1.0).astype(np.int8)


@dataclass(frozen=True)
class Squared(Loss):
    def at(self, f: Floats, y: Floats) -> Derivatives:
        rest = f - y
        return Derivatives(0.5 * rest * rest, rest, np.ones_like(rest))

    def piece(self, f: Floats, y: Floats) -> NDArray[np.int8]:
        return np.zeros(np.broadcast_shapes(f.shape, y.shape), dtype=np.int8)


@dataclass(frozen=True)
class SquaredTube(Loss):
    """The squared ε-insensitive loss."""

    epsilon: float

    def at(self, f: Floats, y: Floats) -> Derivatives:
        rest = f - y
        outside = np.maximum(np.abs(rest) - self.epsilon, 0.0)
        slope = np.copysign(outside, rest)
        return Derivatives(0.5 * outside * outside, slope, (outside > 0).astype(np.float64))

    def piece(self, f: Floats, y: Floats) -> NDArray[np.int8]:
        rest = f - y
        above, below = rest > self.epsilon, rest < -self.epsilon
        return above.astype(np.int8) - below.astype(np.int8)


@dataclass(frozen=True)
class SmoothTube(Loss):
    epsilon: float
    beta: float
    piecewise = False

    def at(self, f: Floats, y: Floats) -> Derivatives:
        p, p1, p2 = _smooth_plus(f - y - self.epsilon, self.beta)
        q, q1, q2 = _smooth_plus(y - f - self.epsilon, self.beta)
        return Derivatives(
            0.5 * (p * p + q * q), p * p1 - q * q1, p1 * p1 + p * p2 + q1 * q1 + q * q2
        )

    def piece(self, f: Floats, y: Floats) -> NDArray[np.int8]:
        return SquaredTube(self.epsilon).piece(f, y)


def _smooth_plus(x: Floats, beta: float) -> tuple[Floats, Floats, Floats]:
    """p(x, β) and its derivatives."""
    step = expit(beta * x)
    return np.logaddexp(0.0, beta * x) / beta, step, beta * step * expit(-beta * x)
