"""Declares the scales of grades, with the meaning of each grade for people and models, and parses scales of your own."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from goodgain.errors import InputError


@dataclass(frozen=True)
class Scale:
    """The grades that a judge can give, ascending, and what each grade means.

    A meaning is a name, or a name and an explanation divided by `: `. It is "" for a grade that has no words.
    """

    name: str
    grades: tuple[float, ...]
    meanings: tuple[str, ...] = ()

    @property
    def is_binary(self) -> bool:
        return self.grades == (0.0, 1.0)

    def list_meanings(self) -> list[tuple[str, str]]:
        """Return pairs of a grade as text and its meaning.

        >>> find_scale("0: no; 1: yes").list_meanings()
        [('0', 'no'), ('1', 'yes')]
        """
        meanings = self.meanings or ("",) * len(self.grades)
        return [(f"{grade:g}", meaning) for grade, meaning in zip(self.grades, meanings, strict=True)]

    def write_lines(self) -> str:
        """Return a line for each grade, as a prompt has it."""
        return "\n".join(f"{grade} - {meaning}." for grade, meaning in self.list_meanings())

    def write_legend(self) -> str:
        """Return the names of the grades as one line, or "" if no grade has a name.

        >>> find_scale("graded").write_legend()
        '0 irrelevant; 1 related; 2 relevant; 3 highly relevant'
        """
        names = [(grade, meaning.partition(": ")[0]) for grade, meaning in self.list_meanings()]
        return "; ".join(f"{grade} {name}" for grade, name in names if name)


def _declare(name: str, low: int, *meanings: str) -> Scale:
    return Scale(name, tuple(float(low + place) for place in range(len(meanings))), meanings)


_BINARY = _declare(
    "binary",
    0,
    "not relevant: the document does not help with the question",
    "relevant: the document helps with the question",
)
_GRADED = _declare(
    "graded",
    0,
    "irrelevant: the document is about something else",
    "related: same subject, no part of the answer",
    "relevant: it has a part of the answer",
    "highly relevant: it has the answer",
)
_GOOD_GAIN = _declare(
    "good-gain",
    0,
    "irrelevant: the document is about something else",
    "on topic, but it does not help: same subject, no part of the answer",
    "helps in part: it has a part of the answer",
    "answers most of it: only a detail is missing",
    "fully answers it",
)
_DETAIL = _declare("detail", 1, "of no use", "", "", "", "of some use", "", "", "", "", "perfect")
_ESCI = _declare(
    "esci",
    0,
    "irrelevant (I): the product has nothing to do with the query",
    "complement (C): it is used together with what the query asks for",
    "substitute (S): it lacks a part of the query, and can be used instead",
    "exact (E): it has all that the query asks for",
)
_UMBRELA = _declare(
    "umbrela",
    0,
    "the passage is unrelated to the query",
    "the passage is related to the query, but does not answer it",
    "the passage answers the query in part, unclearly, or among much that is beside the point",
    "the passage is about the query, and gives the exact answer",
)
SCALES = {scale.name: scale for scale in (_BINARY, _GRADED, _GOOD_GAIN, _DETAIL, _ESCI, _UMBRELA)}
#: The labels on the scale `esci`, of Amazon's shopping queries: exact, substitute, complement, irrelevant.
ESCI_LETTERS = {"E": 3.0, "S": 2.0, "C": 1.0, "I": 0.0}

#: A scale: a name, `LOW..HIGH` for whole grades, `0,1,3`, `0: no; 1: yes`, a sequence of grades, or {grade: meaning}.
ScaleLike = str | Mapping[float, str] | Iterable[float]

_RANGE = re.compile(r"\s*(-?\d+)\s*\.\.\s*(-?\d+)\s*")
#: The most grades of a range. Agreement compares all pairs of grades.
_MOST_GRADES = 1000


def find_scale(scale: ScaleLike) -> Scale:
    """Parse a scale: a name, a range `LOW..HIGH`, a list of grades, or grades with their meanings.

    >>> find_scale("0..4").grades
    (0.0, 1.0, 2.0, 3.0, 4.0)
    >>> find_scale({0: "off topic", 1: "helps"}).meanings
    ('off topic', 'helps')
    """
    if isinstance(scale, str) and scale in SCALES:
        return SCALES[scale]
    match = _RANGE.fullmatch(scale) if isinstance(scale, str) else None
    if isinstance(scale, str) and match is not None:
        low, high = map(int, match.groups())
        if 0 < high - low < _MOST_GRADES:
            return Scale(scale, tuple(map(float, range(low, high + 1))))

    try:
        pairs = _read_pairs(scale)
    except (TypeError, ValueError, AttributeError):
        pairs = {}
    if len(pairs) < 2 or not all(map(math.isfinite, pairs)):
        raise InputError(
            f"{scale!r} is not a scale of two or more grades. Write {', '.join(SCALES)}, LOW..HIGH such as 0..4, a list of "
            "grades such as 0,1,3, or grades with their meanings such as '0: no; 1: partly; 2: yes'"
        )
    grades = tuple(sorted(pairs))
    meanings = tuple(pairs[grade] for grade in grades)
    return Scale(",".join(f"{grade:g}" for grade in grades), grades, meanings if any(meanings) else ())


def _read_pairs(scale: ScaleLike) -> dict[float, str]:
    """Return {grade: meaning}. Grades without words have the meaning ""."""
    if isinstance(scale, Mapping):
        return {float(grade): " ".join(meaning.split()) for grade, meaning in scale.items()}
    if not isinstance(scale, str):
        return {float(grade): "" for grade in scale}
    if ":" not in scale:
        return {float(grade): "" for grade in scale.split(",")}

    divided = [part.partition(":") for part in scale.split(";") if part.strip()]
    pairs = {float(grade): " ".join(meaning.split()) for grade, _, meaning in divided}
    if len(pairs) < len(divided):
        raise ValueError("a grade has two meanings")
    return pairs
