"""Draws ``approximate-leave-one-out.png``: estimated values against those of n fits.

Run it from anywhere; it needs ``onefit[plot]``. The data come with scikit-learn.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer, make_moons
from sklearn.preprocessing import StandardScaler

from onefit import SVC, leave_one_out

X, y = load_breast_cancer(return_X_y=True)
cases = {
    "breast cancer, C = 1": (SVC(C=1, gamma="auto"), StandardScaler().fit_transform(X), y),
    "breast cancer, C = 100": (SVC(C=100, gamma="auto"), StandardScaler().fit_transform(X), y),
    "noisy moons, C = 100": (
        SVC(C=100, gamma=1.0),
        *make_moons(500, noise=0.35, random_state=0),
    ),
}

figure, axes = plt.subplots(1, len(cases), figsize=(10.5, 3.7), layout="constrained")
for ax, (name, (machine, X, y)) in zip(axes, cases.items(), strict=True):
    estimate = leave_one_out(machine, X, y, method="approximate", certify=False)
    exact = leave_one_out(machine, X, y, certify=False)
    truth, value = exact.decision_values, estimate.decision_values
    moved = estimate.full_values != value
    for rows, look in (
        (moved & estimate.reliable, {"s": 9, "color": "tab:blue", "label": "reliable"}),
        (~estimate.reliable, {"s": 26, "color": "tab:red", "marker": "x", "label": "in doubt"}),
    ):
        ax.scatter(truth[rows], value[rows], **look)
    ends = np.quantile(np.concatenate((truth[moved], value[moved])), [0.005, 0.995])
    ax.set(xlim=ends, ylim=ends, aspect="equal", xlabel="value of the fit without the row")
    ax.axline((0, 0), slope=1, color="0.7", linewidth=1, zorder=0)
    for line in (ax.axhline, ax.axvline):
        line(0, color="0.7", linewidth=1, linestyle=":", zorder=0)
    rates = (
        f"{estimate.error:.1%}, refined {estimate.refine().error:.1%}, exactly {exact.error:.1%}"
    )
    ax.set_title(f"{name}\nerror {rates}", fontsize=9)
axes[0].set_ylabel("estimate")
axes[0].legend(loc="upper left", fontsize=8)
figure.savefig(Path(__file__).with_name("approximate-leave-one-out.png"), dpi=90)
