"""Reports of a gate for other programs: JUnit XML for continuous integration, and a Markdown comment for a bot."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

from goodgain.comparing.requirements import Outcome
from goodgain.files.escaping import escape_controls


def write_junit(outcomes: Sequence[Outcome]) -> str:
    """Return the outcomes as JUnit XML: a test case for each required line and system.

    Source: junit-10.xsd of the xUnit plugin of Jenkins.
    """
    failures = sum(not outcome.holds for outcome in outcomes)
    totals = {"name": "goodgain", "tests": str(len(outcomes)), "failures": str(failures), "errors": "0"}
    suites = ElementTree.Element("testsuites", totals)
    suite = ElementTree.SubElement(suites, "testsuite", totals | {"skipped": "0", "time": "0"})
    for outcome in outcomes:
        named = {"name": escape_controls(outcome.requirement.text), "classname": escape_controls(outcome.system)}
        case = ElementTree.SubElement(suite, "testcase", named | {"time": "0"})
        message = escape_controls(f"{outcome.system} {outcome.describe()}")
        if outcome.holds:
            ElementTree.SubElement(case, "system-out").text = message
        else:
            ElementTree.SubElement(case, "failure", {"type": "requirement", "message": message})
    ElementTree.indent(suites)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(suites, encoding="unicode")}\n'
