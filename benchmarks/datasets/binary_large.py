"""Two classes, dense, 5,000 rows and more."""

from __future__ import annotations

from .base import DataSet, Group, Scaling, npz

GROUP = Group(
    name="binary-large",
    rank=1,
    datasets=(
        DataSet("ida_waveform", npz("ida_waveform"), Scaling.STANDARDISE),
        DataSet("ida_banana", npz("ida_banana"), Scaling.STANDARDISE),
        DataSet("cbcl_faces", npz("cbcl_faces"), Scaling.UNIT),  # grey values
        DataSet("ida_ringnorm", npz("ida_ringnorm"), Scaling.STANDARDISE),
        DataSet("magic", npz("magic"), Scaling.STANDARDISE),
    ),
)
