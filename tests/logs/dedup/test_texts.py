"""Texts, times, ids: what counts as equal, and how long a text is."""

import polars as pl
import pytest

from goodgain.logs.dedup import deduplicate
from goodgain.logs.dedup.document_types import canonical_name, normalise_texts, normalise_values, text_length
from goodgain.logs.dedup.evidence import measure_overlap
from tests.logs.dedup.writing import TEXTS, frame, result


def _normal(text: str | None) -> str | None:
    return normalise_texts(pl.Series([text], dtype=pl.String))[0]


@pytest.mark.each
@pytest.mark.parametrize(("raw", "normal"), TEXTS["normalised"])
def test_a_text_is_normalised(raw: str | None, normal: str | None) -> None:
    assert _normal(raw) == normal


@pytest.mark.parametrize("text", [TEXTS[name] for name in ("EN", "DE", "RU", "AR", "ZH", "JA", "TH")])
def test_normalising_again_changes_nothing(text: str) -> None:
    assert _normal(_normal(text)) == _normal(text)


def test_characters_of_scripts_without_blanks_count_double() -> None:
    lengths = pl.DataFrame({"text": ["abc", "河流a", "かワー", "강물", "น้ำ", None]}).select(text_length(pl.col("text")))
    assert lengths.to_series().to_list() == [3, 5, 6, 2, 6, 0]


def _shared(one: str, two: str) -> float:
    return float(measure_overlap(pl.Series([one, two]), pl.Series([0]).to_numpy(), pl.Series([1]).to_numpy())[0])


def test_the_smaller_text_is_the_measure_of_what_is_shared() -> None:
    words = [f"w{n}" for n in range(30)]
    assert _shared(" ".join(words), " ".join(words[5:20])) == 1.0
    assert _shared(" ".join(words), " ".join([*words[:10], "x", *words[11:]])) == pytest.approx(21 / 26)
    assert _shared(" ".join(words), " ".join(reversed(words))) == 0.0
    assert _shared("a b c", "a b c") == 1.0
    assert _shared("...", "...") == 0.0


def test_grams_are_of_characters_where_no_blanks_are_written() -> None:
    assert _shared("河流水位报告", "河流水位报告与") == 1.0
    assert _shared("河流水位报告", "河流报告水位") == 0.0


@pytest.mark.each
@pytest.mark.parametrize(("name", "values"), TEXTS["one value"].items())
def test_ways_of_writing_one_value(name: str, values: list[str]) -> None:
    assert normalise_values(pl.Series([name] * len(values)), pl.Series(values)).n_unique() == 1


@pytest.mark.each
@pytest.mark.parametrize(("name", "values"), TEXTS["different values"].items())
def test_different_values_stay_different(name: str, values: list[str]) -> None:
    assert normalise_values(pl.Series([name] * len(values)), pl.Series(values)).n_unique() == len(values)


@pytest.mark.parametrize("name", ["FileId", "fileId", "file_id", "file-id", "FILE_ID", "File ID"])
def test_a_name_is_known_in_every_spelling(name: str) -> None:
    assert canonical_name(name) == "file_id"


@pytest.mark.parametrize(("other", "pairs"), [("{} and an end", 1), ("other words {}", 0)])
def test_long_texts_are_compared_if_their_beginnings_are_equal(other: str, pairs: int) -> None:
    text = " ".join(f"word{n}" for n in range(100))
    summary = deduplicate(
        frame([result(doc_id="1", snippet=text), result(doc_id="2", snippet=other.format(text))])
    ).summary
    assert (summary.pairs, summary.undecided) == (pairs, pairs)
