"""Texts, times, ids: what counts as equal, and how long a text is."""

import polars as pl
import pytest

from goodgain.logs.dedup.document_types import canonical_name, normalise_texts, normalise_values, text_length
from goodgain.logs.dedup.verification import measure_overlap
from tests.logs.dedup.writing import TEXTS


def _normal(text: str | None) -> str | None:
    return normalise_texts(pl.Series([text], dtype=pl.String))[0]


@pytest.mark.parametrize(
    ("raw", "normal"),
    [
        ("  Red\n\tRiver ", "red river"),
        ("re<b>trie</b>val and **rank**", "retrieval and rank"),
        ("one<br/>two", "one two"),
        ("a < b and b > c", "a < b and b > c"),
        ("R&amp;D&nbsp;lab", "r&d lab"),
        ("ＦＵＬＬ　ｗｉｄｔｈ", "full width"),
        ("STRASSE", "strasse"),
        ("Straße", "strasse"),
        ("ΣΊΣΥΦΟΣ", "σίσυφοσ"),
        ("soft\u00adhyphen\u200b", "softhyphen"),
        ("<b></b>", None),
        ("", None),
        (None, None),
    ],
)
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


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("start", ["2024-05-06T09:00:00Z", "2024-05-06T11:00:00+02:00", "2024-05-06 09:00:00", "1714986000",
                   "1714986000000", "Mon, 06 May 2024 09:00:00 +0000", "2024-05-06T09:00:00.1234567Z"]),
        ("sender", ["ann@example.org", "Ann Lee <ANN@example.org>", "<ann@example.org>", "mailto:ann@example.org"]),
        ("recipients", ["a@x.org; b@x.org", "B <b@x.org>,A <a@x.org>"]),
        ("file_type", ["pdf", ".PDF"]),
        ("offset", ["7", "007", "7.0", " 7 "]),
        ("file_id", ["{0A1B2C3D-0000-4000-8000-0000000000FF}", "0a1b2c3d-0000-4000-8000-0000000000ff"]),
        ("message_id", ["<A@example.org>", "a@example.org"]),
    ],
)  # fmt: skip
def test_ways_of_writing_one_value(name: str, values: list[str]) -> None:
    assert normalise_values(pl.Series([name] * len(values)), pl.Series(values)).n_unique() == 1


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("file_id", ["Abc", "abc", " abd"]),
        ("start", ["2024-05-06T09:00:00Z", "2024-05-06T09:00:00+02:00", "next Monday", "0001-01-01T00:00:00+05:00"]),
        ("offset", ["7", "70", "-7", "x"]),
    ],
)
def test_different_values_stay_different(name: str, values: list[str]) -> None:
    assert normalise_values(pl.Series([name] * len(values)), pl.Series(values)).n_unique() == len(values)


@pytest.mark.parametrize("name", ["FileId", "fileId", "file_id", "file-id", "FILE_ID", "File ID"])
def test_a_name_is_known_in_every_spelling(name: str) -> None:
    assert canonical_name(name) == "file_id"
