"""A case as a few lines of Python that need nothing of the campaign."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from campaign import kernels
from campaign.case import LAYOUTS, Case, int64_indices
from campaign.worker import module_of


def snippet(case: Case) -> str:
    """Data as literals, then what the class of the case calls."""
    body = module_of(case.kind).code(case)
    lines = ["import numpy as np"]
    names = {"sp": "import scipy.sparse as sp", "sklearn": "import sklearn"}
    layout = LAYOUTS[case.options.get("layout", "dense")]
    rest = f"{layout}\n{body}"
    lines += [text for name, text in names.items() if f"{name}." in rest]
    lines += ["import sklearn.svm, sklearn.model_selection"] if "sklearn." in body else []
    lines += ["import onefit", ""]
    if "isa" in case.options:
        lines += ["from onefit import _core", f"_core.use_instruction_set({case.options['isa']!r})"]
    lines += [f"X = {array(case.X)}", f"y = {array(case.y)}"]
    lines.append(f"w = {array(case.weight) if case.weight is not None else None}")
    if "int64_indices" in layout:
        lines += [inspect.getsource(int64_indices)]
    if layout != "X":
        lines.append(f"X = {layout}")
    for name in kernels.NAMES:
        if name in body:
            lines.append(inspect.getsource(getattr(kernels, name)))
    return "\n".join([*lines, body, ""])


def array(values: np.ndarray) -> str:
    with np.printoptions(threshold=10**9, linewidth=100, floatmode="unique", precision=None):
        text = np.array2string(values, separator=", ")
    text = text.replace("nan", "np.nan").replace("inf", "np.inf")
    empty = f".reshape({values.shape})" if values.size == 0 else ""
    return f"np.array({text}, dtype={values.dtype.name!r}){empty}"


def keywords(params: dict[str, Any]) -> str:
    return ", ".join(f"{name}={text_of(value)}" for name, value in params.items())


def model_text(model: Any) -> str:
    """Its name with the parameters that are not the defaults; kernel functions by name."""
    defaults = type(model)().get_params()
    changed = {k: v for k, v in model.get_params().items() if v != defaults[k]}
    return f"{type(model).__name__}({keywords(changed)})"


def text_of(value: Any) -> str:
    return value.__name__ if callable(value) else repr(value)
