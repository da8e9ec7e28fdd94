"""Leave-one-out: what the fit on all rows proves of left-out rows, and solves for the others."""

from onefit.loo.checks import DecidedBy
from onefit.loo.ledger import LooLedger
from onefit.loo.result import LooResult

__all__ = ["DecidedBy", "LooLedger", "LooResult"]
