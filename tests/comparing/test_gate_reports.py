"""The reports of a gate: JUnit XML that Jenkins reads, and a Markdown comment that a bot keeps up to date."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

from goodgain.comparing.comparison import compare
from goodgain.comparing.gate_reports import write_junit
from goodgain.comparing.requirements import check_requirements
from tests.comparing.test_comparison import EXAMPLES, many
from tests.support.command import run_command

REDUNDANCY = EXAMPLES / "redundancy"
FILES = REDUNDANCY / "qrels.txt", REDUNDANCY / "lean.run", REDUNDANCY / "repeating.run"

#: junit-10.xsd of the Jenkins xUnit plugin: element -> required attributes, other attributes, children.
_SCHEMA = {
    "testsuites": (set(), {"name", "time", "tests", "failures", "errors"}, {"testsuite"}),
    "testsuite": (
        {"name", "tests", "failures", "errors"},
        {"group", "time", "skipped", "timestamp", "hostname", "id", "package", "file", "log", "url", "version"},
        {"testsuite", "properties", "testcase", "system-out", "system-err"},
    ),
    "testcase": (
        {"name"},
        {"time", "classname", "group"},
        {"skipped", "error", "failure", "system-out", "system-err"},
    ),
    "failure": (set(), {"type", "message"}, set()),
    "system-out": (set(), set(), set()),
}
_TIME = re.compile(r"(([0-9]{0,3},)*[0-9]{3}|[0-9]{0,3})*(\.[0-9]{0,3})?")


def check_schema(element: ElementTree.Element) -> None:
    required, optional, children = _SCHEMA[element.tag]
    assert required <= {*element.keys()} <= required | optional, element.tag
    assert element.tag == "testcase" or _TIME.fullmatch(element.get("time", ""))
    for child in element:
        assert child.tag in children, f"{child.tag} in {element.tag}"
        check_schema(child)


def test_junit_has_a_case_for_each_line_and_system_as_the_schema_of_jenkins_has_it(tmp_path: Path) -> None:
    lines = ("--require", "SRR@3<=0.3", "--require", "CG@3>=baseline")
    done = run_command("compare", *FILES, *lines, "--junit", tmp_path / "gate.xml", "-o", "csv")
    assert done.returncode == 3
    suites = ElementTree.parse(tmp_path / "gate.xml").getroot()
    assert suites.tag == "testsuites"
    check_schema(suites)
    cases = suites.findall("testsuite/testcase")
    assert [(case.get("name"), case.get("classname"), case.find("failure") is not None) for case in cases] == [
        ("SRR@3<=0.3", "repeating", True),
        ("CG@3>=baseline", "repeating", False),
    ]
    assert (suites[0].get("tests"), suites[0].get("failures"), suites[0].get("errors")) == ("2", "1", "0")
    failure = cases[0].find("failure")
    assert failure is not None and "repeating has 0.4643, 0.1643 above" in failure.get("message", "")


def test_junit_of_single_runs(tmp_path: Path) -> None:
    run_command("evaluate", *FILES, "-m", "SRR", "--require", "SRR@3<=0.3", "--junit", tmp_path / "gate.xml")
    cases = ElementTree.parse(tmp_path / "gate.xml").getroot().findall("testsuite/testcase")
    assert [case.get("classname") for case in cases] == ["lean", "repeating"]


def test_names_break_no_xml() -> None:
    labels, runs = many(3)
    named = dict(zip(('<a & "b">', "\x1b[31m\x00'"), runs.values(), strict=True))
    suites = ElementTree.fromstring(write_junit(check_requirements(compare(labels, named, "SRR@3"), ["SRR@3<0"])))
    check_schema(suites)
    assert [case.get("classname") for case in suites.findall("testsuite/testcase")] == ['<a & "b">', r"\x1b[31m\x00'"]
