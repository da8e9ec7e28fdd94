"""scikit-learn's own tests, with onefit's estimators and functions in the place of its own."""

import importlib.util
import inspect
import re
import types

import pytest

import onefit


class _ProbabilityIgnored:
    """``probability=True``, which onefit refuses, is taken as False.

    Many tests ask for it and check other things besides; so they get as far as these.
    """

    def _training(self, y, weights, **how):
        asked, self.probability = self.probability, False
        try:
            return super()._training(y, weights, **how)
        finally:
            self.probability = asked


class SVC(_ProbabilityIgnored, onefit.SVC):
    """onefit's, but for ``probability``."""


class NuSVC(_ProbabilityIgnored, onefit.NuSVC):
    """onefit's, but for ``probability``."""


ESTIMATORS = {"SVC": SVC, "SVR": onefit.SVR, "NuSVC": NuSVC, "NuSVR": onefit.NuSVR}


def ours_among(module_name, package, ours):
    """The tests of an installed module of scikit-learn that mention one of these names.

    ``ours`` are our objects by the names that they have in a package of scikit-learn. The module is
    run anew, as a copy, so that ``from sklearn.svm import SVR`` and ``svm.SVC`` in it mean ours
    while scikit-learn itself stays as it is.
    """
    mentioned = re.compile(rf"\b({'|'.join(ours)})\b")
    return {
        name: test
        for name, test in vars(_run_with(module_name, package, ours)).items()
        if name.startswith("test_")
        and inspect.isfunction(test)
        and mentioned.search(inspect.getsource(test))
    }


def _run_with(module_name, package, ours):
    spec = importlib.util.find_spec(module_name)
    if spec is None:
        pytest.skip(f"{module_name} is not installed", allow_module_level=True)
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        for name in ours.keys() & vars(package).keys():
            patch.setattr(package, name, ours[name])
        spec.loader.exec_module(module)
    vars(module).update({name: ours[name] for name in ours.keys() & vars(module).keys()})
    short_name = package.__name__.removeprefix("sklearn.")
    if hasattr(module, short_name):
        setattr(module, short_name, types.SimpleNamespace(**{**vars(package), **ours}))
    return module
