"""A report of ranx that compares measures to minimise in their own direction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ranx.data_structures import Report as RanxReport  # type: ignore[import-untyped]  # ranx has no types

from goodgain.errors import InputError, notice
from goodgain.formats.systems import find_likely_replicates
from goodgain.hosts.ranx.metrics import parse_metric, split_name
from goodgain.measures.declaration import GoodGainMeasure
from goodgain.measures.names import HOST_NAMES

_LATEX_ARROWS = {"↑": r"$\uparrow$", "↓": r"$\downarrow$"}


def _show(name: str) -> Callable[..., str]:
    """Return a method of ranx's report that looks at the values of `_Shown`."""
    return lambda report, *args, **named: str(getattr(_Shown(report), name)(*args, **named))


class Report(RanxReport):  # type: ignore[misc]  # ranx has no types
    """The report that `ranx.compare` returns: superscripts, bold and wins go to the better value, also if it is lower.

    Columns of other metrics, and reports without our measures, are those of ranx.

    Raises:
        InputError: two runs have the same name: ranx has then overwritten the values of the first.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        parsed = {metric: parse_metric(metric) for metric in self.metrics}
        self._columns = {metric: measure for metric, measure in parsed.items() if measure is not None}
        twice = [name for name in self.model_names if self.model_names.count(name) > 1]
        if self._columns and twice:
            raise InputError(
                f"two runs have the name {twice[0]!r}; name them: goodgain.hosts.ranx.Run(source, name=...)"
            )
        for systems in find_likely_replicates(self.model_names).values() if self._columns else ():
            notice(
                f"{', '.join(systems)} look like runs of one system, and ranx tests each as a system. goodgain.compare averages "
                "a list of runs query by query."
            )
        down = {metric for metric, measure in self._columns.items() if measure.declaration.better == "down"}
        self.win_tie_loss: dict[tuple[str, str], dict[str, dict[str, int]]] = {
            pair: {
                metric: {"W": found["L"], "T": found["T"], "L": found["W"]} if metric in down else found
                for metric, found in by_metric.items()
            }
            for pair, by_metric in self.win_tie_loss.items()
        }

    def to_table(self) -> str:
        """Return the report as text."""
        return str(_Shown(self).to_table())

    def to_latex(self) -> str:
        """Return the report as a LaTeX table."""
        return str(_Shown(self, _LATEX_ARROWS).to_latex())

    get_metric_label = _show("get_metric_label")
    get_superscript_for_table = _show("get_superscript_for_table")
    get_superscript_for_latex = _show("get_superscript_for_latex")
    get_phantoms_for_latex = _show("get_phantoms_for_latex")


class _Shown(RanxReport):  # type: ignore[misc]  # ranx has no types
    """A copy of a report for one output. `>` between its values means better, so ranx's code marks the right ones."""

    def __init__(self, report: Report, arrows: dict[str, str] | None = None) -> None:
        self.__dict__.update(report.__dict__)
        self._arrows = arrows or {}
        self.results = {
            model: {
                metric: _Value(value, self._columns[metric]) if metric in self._columns else value
                for metric, value in values.items()
            }
            for model, values in report.results.items()
        }

    def get_metric_label(self, m: str) -> str:
        if m not in self._columns:
            return str(super().get_metric_label(m))
        (written, name), arrow = split_name(m), self._columns[m].declaration.arrow
        return f"{HOST_NAMES[str(name)]}{m.removeprefix(written)} {self._arrows.get(arrow, arrow)}"

    def format_score(self, score: float) -> str:
        """Return a value as text; only a share can be a percentage: 1 iteration is not 100 %."""
        if isinstance(score, _Value) and score.measure.declaration.bounds != ("0", "1"):
            return f"{score:.{self.rounding_digits}f}"
        return str(super().format_score(score))


class _Value(float):
    """A value of one of our measures; `>` means better."""

    measure: GoodGainMeasure

    def __new__(cls, value: float, measure: GoodGainMeasure) -> _Value:
        made = super().__new__(cls, value)
        made.measure = measure
        return made

    def __gt__(self, other: float) -> bool:
        """Return whether this value is better than the other.

        ranx starts its search for the best value at the plain number 0: any value to minimise is better than that.
        """
        if self.measure.declaration.better != "down":
            return float(self) > float(other)
        return not isinstance(other, _Value) or float(self) < float(other)

    def __lt__(self, other: float) -> bool:
        return isinstance(other, _Value) and other > self

    def __round__(self, ndigits: int | None = None) -> _Value:  # type: ignore[override]  # ranx rounds before it looks for the best
        return self
