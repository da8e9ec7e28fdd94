"""A class of cases with planted defects; the number of a case says which."""

import os
import time

import numpy as np

from campaign.case import Case, Difference

DEFECTS = ("none", "tie", "difference", "crash", "hang")


def draw(name, rng):
    defect = DEFECTS[int(name.split(":")[2]) % len(DEFECTS)]
    options = {"defect": defect, "layout": "csr"}
    return Case(name, rng.standard_normal((30, 3)), np.arange(30) % 2, None, options=options)


def check(case):
    defect = case.options.get("defect")
    if defect == "tie":
        return 3
    if defect == "difference" and (case.X[:, 0] > 0).any():
        raise Difference("planted", "a row has a positive first column")
    if defect == "crash":
        os.abort()
    if defect == "hang":
        time.sleep(600)
    return 0


def code(case):
    return "print(X, y, w)"
