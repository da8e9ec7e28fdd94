"""Cross-validation with scikit-learn's functions, for the price of about one fit."""

from onefit.model_selection.leave_one_out import leave_one_out
from onefit.model_selection.validation import cross_val_predict, cross_val_score, cross_validate

__all__ = ["cross_val_predict", "cross_val_score", "cross_validate", "leave_one_out"]
