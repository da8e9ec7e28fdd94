"""Three to 26 classes, dense: one-versus-one over the pairs of classes."""

from __future__ import annotations

from .base import DataSet, Group, Scaling, npz, shipped

GROUP = Group(
    name="multiclass",
    rank=2,
    datasets=(
        DataSet("vowel", npz("vowel"), Scaling.STANDARDISE),
        DataSet("digits", shipped("load_digits"), Scaling.UNIT),  # grey values
        DataSet("segment", npz("segment"), Scaling.NONE),  # is in [-1, 1]
        DataSet("dna", npz("dna"), Scaling.NONE),  # zeros and ones
        DataSet("satimage", npz("satimage"), Scaling.NONE),  # is in [-1, 1]
        DataSet("mnist.t", npz("mnist.t"), Scaling.UNIT),  # grey values
        DataSet("letter", npz("letter"), Scaling.NONE),  # is in [-1, 1]
    ),
)
