"""How figures are written, the same on the screen and in files."""

from __future__ import annotations

from ..record import CaseRecord, Entry
from ..runner import busy_cores
from ..subjects.base import Outcome

HEADINGS = ("rival", "median", "min .. max", "runs", "memory", "cores", "x onefit", "check")
PARAMETERS = ("nu", "C", "epsilon", "gamma")
OTHER_MARK = "†"
OTHER_MARK_MEANS = f"{OTHER_MARK} solves another problem; compared on accuracy only."
NONE = "-"
PART_MARK = "≈ "
PART_MARK_MEANS = f"{PART_MARK}follows from a part of the work (see the remarks)."


def seconds(value: float | None) -> str:
    if value is None:
        return NONE
    if value < 1e-3:
        return f"{value * 1e6:.0f} µs"
    if value < 1:
        return f"{value * 1e3:.3g} ms"
    return f"{value:.3g} s" if value < 100 else f"{value:.0f} s"


def ratio(value: float | None, other_problem: bool = False) -> str:
    if value is None:
        return NONE
    text = f"{value:.2f}" if value < 10 else f"{value:.3g}" if value < 1000 else f"{value:.0f}"
    return text + (OTHER_MARK if other_problem else "")


def time(entry: Entry) -> str:
    """Return the median, marked if it follows from a part of the work."""
    return (PART_MARK if entry.share < 1 else "") + seconds(entry.seconds)


def is_other(entry: Entry) -> bool:
    return entry.verdict is not None and entry.verdict.outcome is Outcome.OTHER


def megabytes(value: float | None) -> str:
    return NONE if value is None else f"{value:.0f} MB"


def heading(record: CaseRecord) -> str:
    facts = record.facts
    if record.skipped:
        return f"{facts['name']}: skipped, {record.skipped}"
    kind = "sparse" if facts["sparse"] else "dense"
    classes = f", {facts['classes']} classes" if facts["classes"] else ""
    size = f"{facts['rows']} x {facts['features']} {kind}{classes}"
    return f"{facts['name']}: {size}{parameters(record)}"


def parameters(record: CaseRecord) -> str:
    """Return the parameters of a case, each with a comma before it."""
    facts = record.facts
    return "".join(f", {name} = {facts[name]:g}" for name in PARAMETERS if name in facts)


def row(record: CaseRecord, entry: Entry) -> tuple[str, ...]:
    """Return the texts below HEADINGS for one rival on one case."""
    if not entry.samples:
        return (entry.rival, *[NONE] * 6, f"not run: {entry.not_run}")
    verdict = entry.verdict
    check = f"{verdict.outcome.value}: {verdict.text}" if verdict else NONE
    if entry.rival == record.reference:
        check = f"reference; {check}"
    if busy_cores(entry):
        check += f"; used more cores than the {entry.threads} it was told to"
    if entry.share < 1:
        check += f"; times follow from {entry.percent_done} of the work"
    times = [sample.seconds / entry.share for sample in entry.samples]
    return (
        entry.rival,
        time(entry),
        f"{seconds(min(times))} .. {seconds(max(times))}",
        str(len(times)),
        megabytes(entry.peak_mb),
        f"{entry.cores_used:.1f}" if entry.cores_used is not None else NONE,
        ratio(record.ratio(entry), is_other(entry)),
        check,
    )
