"""The examples of docs/engines.md print what stands there; those of Spark are run by test_spark.py."""

from __future__ import annotations

import contextlib
import doctest
import re

from tests.support.tables import ROOT

PAGE = "docs/engines.md"
EXAMPLES = re.findall(r"```pycon\n(.*?)```", (ROOT / PAGE).read_text(encoding="utf-8"), flags=re.DOTALL)
SPARK_EXAMPLES = [example for example in EXAMPLES if "pyspark" in example]


def run_examples(examples: list[str]) -> None:
    """As one session, in the folder of the checkout."""
    text = "\n".join(examples)
    test = doctest.DocTestParser().get_doctest(text, {}, PAGE, PAGE, 0)
    with contextlib.chdir(ROOT):
        found = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test)
    assert found.attempted >= 3
    assert not found.failed


def test_the_examples_print_what_the_page_shows() -> None:
    assert len(SPARK_EXAMPLES) == 1
    run_examples([example for example in EXAMPLES if example not in SPARK_EXAMPLES])
