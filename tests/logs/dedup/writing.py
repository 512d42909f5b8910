"""What the tests of deduplication are written in: results, pairs of them, and texts of many scripts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import narwhals as nw
import polars as pl

from goodgain.schema import RESULTS

EN = "The river rose by two metres in the night and the old bridge near the mill had to be closed to all traffic."
OTHER = (
    "A committee of nine members will report on the state of the harvest before the end of the coming winter season."
)
LONG = (
    "In the quiet years after the flood the villages along the upper river built walls of stone and earth, kept a "
    "watch at every bend, and wrote the height of the water into a book that was carried from house to house until "
    "nobody alive remembered who had begun it or why the first pages were missing."
)
CONSENT = (
    "We and our partners store and access information on a device, such as cookies, and process personal data, such as "
    "unique identifiers and standard information sent by a device for personalised advertising and content, and for "
    "measuring both. Click to consent to this or to refuse."
)
DE = (
    "Der Fluss stieg in der Nacht um zwei Meter, und die alte Brücke bei der Mühle musste für Autos geschlossen werden."
)
FR = "La rivière est montée de deux mètres dans la nuit et le vieux pont près du moulin a été fermé à la circulation."
RU = "Ночью река поднялась на два метра, и старый мост у мельницы пришлось закрыть для всякого движения."
AR = "ارتفع منسوب النهر مترين خلال الليل واضطرت السلطات إلى إغلاق الجسر القديم قرب الطاحونة أمام حركة المرور"
ZH = "昨夜河水上涨了两米，磨坊附近的旧桥不得不对所有车辆关闭，沿岸居民已经转移到学校和体育馆等待进一步的通知。"
JA = "昨夜川の水位が二メートル上がり、水車小屋の近くの古い橋はすべての交通に対して閉鎖され、住民は学校に避難した。"
KO = "밤사이 강 수위가 이 미터 올라 방앗간 근처의 오래된 다리가 모든 차량에 통제되었고 주민들은 학교로 대피하였다."
TH = "เมื่อคืนนี้ระดับน้ำในแม่น้ำสูงขึ้นสองเมตรและสะพานเก่าใกล้โรงสีต้องปิดการจราจรทั้งหมดจนกว่าจะมีประกาศ"

Result = dict[str, object]


class Pair(NamedTuple):
    """Two results of one query, whether they are the same document, and why."""

    same: bool
    reason: str
    first: Result
    second: Result


def result(*, ids: Mapping[str, str] | Iterable[tuple[str, str]] = (), **values: object) -> Result:
    """One result: what is a column of the results table goes there, all else into its fields."""
    columns = {name: value for name, value in values.items() if name in RESULTS.columns}
    fields = {name: value for name, value in values.items() if name not in RESULTS.columns}
    pairs = ids.items() if isinstance(ids, Mapping) else ids
    return columns | {"ids": _pairs(pairs), "fields": _pairs(fields.items())}


def _pairs(pairs: Iterable[tuple[str, object]]) -> list[dict[str, str]]:
    return [{"name": name, "value": str(value)} for name, value in pairs]


def frame(results: Iterable[Result], query_id: str = "q") -> pl.DataFrame:
    """A results frame: one search of ten results an iteration, in the order given."""
    rows = [
        {"query_id": query_id, "iteration": place // 10 + 1, "search": 1, "rank": place % 10 + 1} | row
        for place, row in enumerate(results)
    ]
    return pl.DataFrame(rows, schema_overrides=schema(), schema={name: schema()[name] for name in _columns(rows)})


def _columns(rows: list[Result]) -> list[str]:
    return [name for name in RESULTS.columns if any(name in row for row in rows)]


def schema() -> dict[str, pl.DataType]:
    """The types of the results table in Polars."""
    empty = nw.DataFrame.from_dict({}, schema=nw.Schema(RESULTS.columns), backend="polars")
    return dict(empty.to_polars().schema)
