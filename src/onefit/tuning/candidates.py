"""From parameters to machines: which candidates see the same data.

Candidates that differ only in parameters of the machine at the end share the transformers before
it, which are then fitted once for each fold. A machine is copied and its attributes are set, which
takes a twentieth of the time of a clone; values are checked once each, as the rules of scikit-learn
are about one parameter at a time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils._param_validation import validate_parameter_constraints

from onefit.estimators.base import KernelMachine
from onefit.estimators.classification import KernelClassifier
from onefit.model_selection.pipelines import last_machine

_PLAIN = (str, int, float, bool, type(None))


@dataclass
class Setting:
    """Transformers, none for a machine alone, and the machines that are given their output."""

    pipeline: Pipeline | None
    machines: dict[int, KernelMachine] = field(default_factory=dict)  # by number of the candidate


def key_of(value: Any) -> Any:
    """Something to compare values of parameters by; what is not plain is equal only to itself."""
    return (type(value), value) if type(value) in _PLAIN else ("object", id(value))


def settings_of(
    estimator: Any, candidates: list[dict[str, Any]]
) -> tuple[list[Setting], list[int]]:
    """The machines of all candidates, by setting, and the candidates that are not understood."""
    read = _Reader(estimator)
    settings: dict[Any, Setting] = {}
    others: list[int] = []
    for number, parameters in enumerate(candidates):
        found = read(parameters)
        if found is None:
            others.append(number)
            continue
        key, pipeline, machine = found
        settings.setdefault(key, Setting(pipeline)).machines[number] = machine
    return list(settings.values()), others


class _Reader:
    """Reads the parameters of candidates of one estimator."""

    def __init__(self, estimator: Any) -> None:
        self._estimator = estimator
        self._valid: set[Any] = set()
        self._pipelines: dict[Any, tuple[Pipeline, str] | None] = {}
        self._prefix = ""
        if isinstance(estimator, KernelMachine):
            self._machine: KernelMachine | None = estimator
        else:
            self._machine = last_machine(estimator)
            self._prefix = _prefix_of(estimator) if self._machine is not None else ""

    def __call__(self, parameters: dict[str, Any]) -> tuple[Any, Pipeline | None, Any] | None:
        """What the candidate is of, its pipeline without the machine's parameters, its machine."""
        if isinstance(self._estimator, KernelMachine):
            machine = self._with(self._estimator, parameters)
            return None if machine is None else ((), None, machine)
        own = {k: v for k, v in parameters.items() if self._prefix and k.startswith(self._prefix)}
        rest = {k: v for k, v in parameters.items() if k not in own}
        key = tuple((name, key_of(rest[name])) for name in sorted(rest))
        if key not in self._pipelines:
            self._pipelines[key] = self._pipeline_of(rest)
        made = self._pipelines[key]
        if made is None:
            return None
        pipeline, prefix = made
        if prefix != self._prefix and own:
            return None
        last = last_machine(pipeline)
        assert last is not None
        machine = self._with(last, {k[len(prefix) :]: v for k, v in own.items()})
        return None if machine is None else (key, pipeline, machine)

    def _pipeline_of(self, parameters: dict[str, Any]) -> tuple[Pipeline, str] | None:
        try:
            pipeline = clone(self._estimator).set_params(**clone(parameters, safe=False))
        except Exception:  # for scikit-learn to say
            return None
        if last_machine(pipeline) is None:
            return None
        return pipeline, _prefix_of(pipeline)

    def _with(self, machine: KernelMachine, parameters: dict[str, Any]) -> KernelMachine | None:
        """A copy of the machine with these parameters, or None if they are not right."""
        kind = type(machine)
        # As ``copy`` does it for an object with nothing but attributes, in a fifth of its time.
        changed: KernelMachine = object.__new__(kind)
        changed.__dict__.update(machine.__dict__, **parameters)
        values = [kind, *[(kind, name, key_of(value)) for name, value in parameters.items()]]
        if not self._valid.issuperset(values):
            if not self._are_valid(changed, parameters):
                return None
            self._valid.update(values)
        if isinstance(changed, KernelClassifier) and not changed._can_predict:
            return None  # for scikit-learn to say
        return changed

    def _are_valid(self, machine: KernelMachine, parameters: dict[str, Any]) -> bool:
        """Whether the machine has these parameters, with values that it allows: those of all its
        parameters, the first time."""
        rules, kind = machine._parameter_constraints, type(machine)
        if not rules.keys() >= parameters.keys():
            return False
        checked = {name: getattr(machine, name) for name in rules}
        if kind in self._valid:
            new = (n for n, v in parameters.items() if (kind, n, key_of(v)) not in self._valid)
            checked = {name: parameters[name] for name in new}
        try:
            validate_parameter_constraints(rules, checked, caller_name=kind.__name__)
        except ValueError:  # for scikit-learn to say
            return False
        return True


def _prefix_of(pipeline: Any) -> str:
    """What the names of parameters of the last machine begin with."""
    prefix = ""
    while isinstance(pipeline, Pipeline):
        name, pipeline = pipeline.steps[-1]
        prefix += f"{name}__"
    return prefix
