"""Numbers that no float, or no integer of the core, can hold: they work, or are named."""

from fractions import Fraction

import numpy as np
import pytest

from estimators.examples import TOY_X, TOY_Y
from onefit import SVC, SVR, NuSVC, NuSVR, ReducedKernel, SmoothSVC, SmoothSVR
from onefit.problem import unit_of_tube

ALL = [SVC, NuSVC, SVR, NuSVR, SmoothSVC, SmoothSVR, ReducedKernel]
ENORMOUS = 10**400
NUMBERS = {
    "C": [ENORMOUS],
    "nu": [Fraction(1, 2)],
    "epsilon": [ENORMOUS],
    "degree": [2**31, 2**40, 2**64, ENORMOUS],
    "gamma": [ENORMOUS, Fraction(1, 2)],
    "coef0": [ENORMOUS, -ENORMOUS, Fraction(1, 2)],
    "tol": [ENORMOUS, Fraction(1, 2)],
    "cache_size": [ENORMOUS, Fraction(1, 2)],
    "intercept_scaling": [1e300, ENORMOUS],
    "threshold": [ENORMOUS],
}
CASES = [
    pytest.param(cls, name, value, id=f"{cls.__name__}-{name}-{number}")
    for cls in ALL
    for name, values in NUMBERS.items()
    for number, value in enumerate(values)
    if name in cls().get_params()
]


@pytest.mark.parametrize(("cls", "name", "value"), CASES)
def test_numbers_that_cannot_be_held_are_named(cls, name, value):
    with pytest.raises(ValueError, match=rf"'{name}' parameter of {cls.__name__} must be .* Got"):
        cls(**{name: value}).fit(TOY_X, TOY_Y)


@pytest.mark.parametrize("cls", [SVC, NuSVC, SVR, NuSVR])
@pytest.mark.parametrize(("name", "value"), [("max_iter", 2**63), ("n_jobs", 2**64)])
def test_counts_that_cannot_be_held_are_named(cls, name, value):
    with pytest.raises(ValueError, match=f"'{name}' parameter of {cls.__name__} must be .* Got"):
        cls(**{name: value}).fit(TOY_X, TOY_Y)


@pytest.mark.parametrize("epsilon", [1e30, 1e39, 1e300])
def test_a_tube_that_is_too_wide_is_named(epsilon):
    with pytest.raises(ValueError, match=r"'epsilon' parameter of SVR must be .* Got 1e\+"):
        SVR(epsilon=epsilon).fit(TOY_X, TOY_Y)


@pytest.mark.parametrize("tol", [1e-3, 1e-300])
@pytest.mark.parametrize("epsilon", [5e-324, 1e-300, 1e-50, 1e-44, 1e-30])
def test_a_tube_of_no_width(epsilon, tol):
    assert unit_of_tube(epsilon, tol) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("cls", ALL[:-1])
@pytest.mark.parametrize(
    "cache_size", [2**63, 1e39, 1e300, 1.7e308, np.uint8(2), np.float16(0.5), np.int8(1), 1e-9]
)
def test_any_positive_number_of_megabytes(cls, cache_size):
    expected = cls(gamma=0.5).fit(TOY_X, TOY_Y).predict(TOY_X)
    model = cls(gamma=0.5, cache_size=cache_size).fit(TOY_X, TOY_Y)
    assert np.allclose(model.predict(TOY_X), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize("number", [np.float32, np.float16, np.longdouble, np.int8, np.uint64])
def test_numbers_of_numpy(cls, number):
    names = {"C", "gamma", "coef0", "degree"} & set(cls().get_params())
    given = {name: number(1) for name in names - {"degree"}}
    plain = dict.fromkeys(given, 1.0)
    model, other = (cls(kernel="poly", **how).fit(TOY_X, TOY_Y) for how in (given, plain))
    method = "transform" if cls is ReducedKernel else "predict"
    assert np.array_equal(getattr(model, method)(TOY_X), getattr(other, method)(TOY_X))
