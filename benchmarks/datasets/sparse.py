"""Two classes, sparse rows. They are passed on as CSR and never centred, which would fill them."""

from __future__ import annotations

from .base import DataSet, Group, Scaling, npz

GROUP = Group(
    name="sparse",
    rank=3,
    datasets=(
        DataSet("a1a", npz("a1a"), Scaling.NONE),  # zeros and ones
        DataSet("reuters_money-fx", npz("reuters_money-fx"), Scaling.NONE),  # rows of norm 1
        DataSet("a9a", npz("a9a"), Scaling.NONE),  # zeros and ones
        DataSet("w8a", npz("w8a"), Scaling.NONE),  # zeros and ones
        DataSet("ijcnn1", npz("ijcnn1"), Scaling.NONE),  # about [-1, 1], 13 of 22 stored
    ),
)
