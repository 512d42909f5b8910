"""Words of several scripts, to make texts of."""

from typing import NamedTuple


class Script(NamedTuple):
    """Words, and what stands between them."""

    words: list[str]
    blank: str


SCRIPTS = (
    Script(
        """river bridge mill flood harvest winter council report measure signal archive village market summer garden
        letter engine border valley forest copper museum theatre orchard railway lantern harbour island meadow glacier
        pepper quarry ribbon saddle timber urchin velvet walnut zephyr""".split(),  # noqa: SIM905 - words read better as text
        " ",
    ),
    Script(
        """der die Fluss Brücke Mühle Ernte Winter Straße Größe Maß Bericht Dorf Markt Sommer Garten Stein Brief Grenze
        Wald Kupfer Bühne Bahnhof Hafen Insel Wiese Gletscher""".split(),  # noqa: SIM905 - words read better as text
        " ",
    ),
    Script(
        """река мост мельница урожай зима совет отчёт мера сигнал архив деревня рынок лето сад камень письмо граница
        лес медь музей театр гавань остров луг ледник""".split(),  # noqa: SIM905 - words read better as text
        " ",
    ),
    Script(
        "نهر جسر طاحونة حصاد شتاء مجلس تقرير مقياس إشارة أرشيف قرية سوق صيف حديقة حجر رسالة حدود واد غابة نحاس".split(),  # noqa: SIM905 - words read better as text
        " ",
    ),
    Script(
        list(
            "河流水位报告桥梁磨坊收获冬季议会信号档案村庄市场夏天花园石头书信边界山谷森林铜博物馆剧院港口岛屿草地冰川"
        ),
        "",
    ),
    Script(
        list("川水位橋収穫冬議会報告測定信号村市場夏庭石手紙国境谷森銅博物館劇場港島草原氷河のはをがにでともや"), ""
    ),
)
