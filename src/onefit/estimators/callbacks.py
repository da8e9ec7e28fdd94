"""What a fit tells scikit-learn's callbacks, which exist from version 1.9 on."""

from __future__ import annotations

from typing import Any

try:
    from sklearn.callback import CallbackSupportMixin
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing: this scikit-learn has no callbacks."""


__all__ = ["CallbackSupportMixin", "FitTask"]

STEPS = 100


class FitTask:
    """A fit as callbacks see it: ``STEPS`` steps, each a part of the way of the KKT gap to ``tol``.

    Without callbacks it does nothing.
    """

    def __init__(self, estimator: Any, X: Any, y: Any, sample_weight: Any) -> None:
        self._estimator = estimator
        self._watched = bool(getattr(estimator, "_skl_callbacks", None))
        if not self._watched:
            return
        metadata = {} if sample_weight is None else {"sample_weight": sample_weight}
        self._data = {"X": X, "y": y, "metadata": metadata}
        self._fit = estimator._init_callback_context(max_subtasks=STEPS)
        self._fit.call_on_fit_task_begin(estimator=estimator, **self._data)
        self._done = 0
        self._looks = 0
        self._next_look = 2
        self._begin_step()

    @property
    def advance(self) -> Any:
        """A function for the solver to call with the share of the work done, or None."""
        return self._advance if self._watched else None

    def _advance(self, share: float) -> bool:
        """Ends the steps that are done; whether a callback asks to stop.

        Called again and again without progress it ends a step now and then all the same, ever more
        seldom: callbacks are heard only then, and one of them may watch the time.
        """
        done = int(share * STEPS)
        self._looks += 1
        if self._looks == self._next_look:
            self._next_look *= 2
            done = max(done, self._done + 1)
        stop = False
        while self._done < min(done, STEPS - 1):
            stop |= self._end_step()
            self._begin_step()
        return stop

    def end(self) -> None:
        """The estimator is fitted."""
        if self._watched:
            self._end_step()
            self._fit.call_on_fit_task_end(
                estimator=self._estimator, reconstruction_attributes={}, **self._data
            )

    def _begin_step(self) -> None:
        self._step = self._fit.subcontext(task_name="step towards tol")
        self._step.call_on_fit_task_begin(estimator=self._estimator, **self._data)

    def _end_step(self) -> bool:
        self._done += 1
        return bool(self._step.call_on_fit_task_end(estimator=self._estimator, **self._data))
