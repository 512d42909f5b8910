"""What the README and the page on commands show is executed, and says the truth; other pages are in test_pages.py."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from hatchling.metadata.core import ProjectMetadata
from hatchling.plugin.manager import PluginManager

import goodgain as gg
from goodgain.cli.program import program
from goodgain.measures import MEASURES
from tests.support.command import run_command
from tests.support.tables import ROOT

PAGES = ["README.md", "docs/command_line.md"]
TEXTS = {page: (ROOT / page).read_text(encoding="utf-8") for page in PAGES}
README = TEXTS["README.md"]
BLOCKS = [(page, *block) for page in PAGES for block in re.findall(r"```(\w*)\n(.*?)```", TEXTS[page], flags=re.DOTALL)]
SHELL = [(page, text) for page, kind, text in BLOCKS if kind == "sh" and "\ngoodgain " in "\n" + text]
PYTHON = [text for _, kind, text in BLOCKS if kind == "python"]
#: A new process of ranx compiles its metrics, which takes 15 seconds.
MARKED = [pytest.param(code, marks=pytest.mark.slow) if "ranx" in code else code for code in PYTHON]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for folder in ("qrels_examples", "docs", "tests/logs/traces/fixtures"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    return tmp_path


def output(command: str, folder: Path) -> str:
    done = run_command(*shlex.split(command, comments=True)[1:], cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(("page", "block"), SHELL)
def test_the_commands_of_a_page_run_one_after_the_other(page: str, block: str, checkout: Path) -> None:
    for command in (line for line in block.splitlines() if line.startswith("goodgain ")):
        if command.startswith("goodgain example "):
            shutil.rmtree(checkout / "qrels_examples")
        shown = output(command, checkout)
        assert shown or "-o " in command


@pytest.mark.slow
@pytest.mark.parametrize("code", MARKED)
def test_python_of_a_page_runs(code: str, checkout: Path) -> None:
    done = subprocess.run([sys.executable, "-c", code], cwd=checkout, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "SRR" in done.stdout


def test_the_table_of_the_readme_has_the_values_of_its_example() -> None:
    header, _, *rows = re.findall(r"^\| .*@.* \|$|^\|[-|]+\|$|^\| `.*[0-9] \|$", README, flags=re.MULTILINE)[:4]
    measures = [cell.strip() for cell in header.strip("| ").split("|")]
    for row in rows:
        name, *values = (cell.strip("` ") for cell in row.strip("|").split("|"))
        scores = gg.evaluate(
            *(ROOT / "qrels_examples/two_agents" / file for file in ("qrels.txt", f"{name}.run")), measures
        )
        assert values == [f"{scores[measure]:.2f}" for measure in measures]
    assert len(rows) == 2


def test_the_readme_shows_before_it_explains() -> None:
    order = ["# goodgain", "badge_version", "images/curve.svg", "pip install goodgain", "## Two commands"]
    order += ["## Six lines of Python", "## Where to go next", "## Citation"]
    places = [README.index(part) for part in order]
    assert places == sorted(places)
    assert README.index("## What the picture shows") > places[order.index("## Six lines of Python")]


def test_headings_that_say_a_number_have_as_many() -> None:
    sections = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", README, flags=re.MULTILINE | re.DOTALL))
    code = re.findall(
        r"```(?:sh|python)\n(.*?)```", sections["Two commands"] + sections["Six lines of Python"], re.DOTALL
    )
    assert [len([line for line in block.splitlines() if line]) for block in code] == [2, 6]
    assert len(re.findall(r"^\| [a-z]", sections["Eight words"], flags=re.MULTILINE)) == 8


def test_the_readme_leads_to_the_pages_in_five_groups() -> None:
    rows = re.findall(r"^\| ([^|]+) \|", README.partition("## Where to go next")[2].partition("\n## ")[0], re.MULTILINE)
    assert rows == ["start", "from logs to runs", "score and compare", "judge", "reference"]


def test_the_first_page_of_each_group_has_at_most_300_words_and_an_example() -> None:
    table = README.partition("## Where to go next")[2].partition("\n## ")[0]
    first = re.findall(r"^\| [^|]+ \| \[[^\]]+\]\(([^)]+)\)", table, re.MULTILINE)
    assert len(first) == 5
    for page in first:
        words = (ROOT / page).read_text(encoding="utf-8").split()
        assert len(words) <= 300, page
        assert "```" in " ".join(words), page


def test_the_readme_has_at_most_120_lines() -> None:
    assert len(README.splitlines()) <= 120


@pytest.mark.parametrize(
    "page", ["README.md", *sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("docs/**/*.md"))]
)
def test_the_links_of_a_page_lead_somewhere(page: str) -> None:
    path = ROOT / page
    for link in LINK.findall(re.sub(r"```.*?```|`[^`]*`", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)):
        file, _, heading = link.partition("#")
        if "://" in link:
            continue
        target = (path.parent / file).resolve() if file else path
        assert target.exists(), link
        assert not heading or heading in list_headings(target), link


def list_headings(page: Path) -> list[str]:
    """The names of the headings of a page, as GitHub makes them."""
    matches = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in matches]


def test_every_page_is_linked_from_the_readme() -> None:
    assert {path.name for path in ROOT.glob("docs/*.md")} <= {Path(link).name for link in LINK.findall(README)}


def test_the_table_of_measures_has_each_with_its_direction() -> None:
    page = (ROOT / "docs/measures.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| (`[^|]*`) \|([^|]*)\|", page, flags=re.MULTILINE))
    betters = {
        re.sub("@i", "", name): better for names, better in rows.items() for name in re.findall("`(.*?)`", names)
    }
    assert set(betters) == set(MEASURES)
    for name, better in betters.items():
        assert better.strip("* ") in (MEASURES[name].declaration.better, "")


@pytest.mark.slow
def test_make_demo_scores_examples_that_exist_and_writes_pictures_and_a_report(checkout: Path) -> None:
    make = subprocess.run(
        ["make", "--no-print-directory", "-n", "demo"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    commands = re.findall(r"-m goodgain (.*?)(?<!\\)\n", make, flags=re.DOTALL)
    assert len(commands) == 6
    (checkout / "pictures").mkdir()
    for command in commands:
        shown = output("goodgain " + command.replace("\\\n", " "), checkout)
        assert shown or command.startswith("report ")
    for picture in re.findall(r"(?:--plot|-o) (pictures\S+)", make):
        assert (checkout / picture).stat().st_size > 1_000
        assert f"/{picture}" in make.splitlines()[-1]


#: The keys of a citation file: https://github.com/citation-file-format/citation-file-format, schema of version 1.2.0.
CFF_KEYS = {
    *("abstract", "authors", "cff-version", "commit", "contact", "date-released", "doi", "identifiers", "keywords"),
    *("license", "license-url", "message", "preferred-citation", "references", "repository", "repository-artifact"),
    *("repository-code", "title", "type", "url", "version"),
}


def test_the_citation_file_is_valid_and_says_what_the_package_says() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {"authors", "cff-version", "message", "title"} <= set(cited) <= CFF_KEYS
    assert cited["cff-version"] == "1.2.0"
    assert cited["type"] == "software"
    assert all(set(author) == {"name"} for author in cited["authors"])  # an entity, not a person
    assert cited["version"] == gg.__version__
    assert cited["license"] == project["license"]
    assert f"goodgain {gg.__version__} (rel=2)" in cited["message"]

    page = " ".join((ROOT / "docs" / "measures.md").read_text(encoding="utf-8").split())
    paper = " ".join((ROOT / "docs" / "paper.md").read_text(encoding="utf-8").split())
    assert f"with goodgain {gg.__version__}" in paper
    assert f"(goodgain {gg.__version__}, docs/measures.md, Definitions)" in page

    bibtex = {"title": cited["title"], "version": cited["version"], "year": str(cited["date-released"].year)}
    for key, value in bibtex.items():
        assert re.search(rf"{key} += \{{{re.escape(value)}\}}", page), key
    assert len(cited["references"]) == 6

    for reference in cited["references"]:
        assert reference["title"] in page
        assert {"type", "authors"} < set(reference)
        assert reference.get("url", "") in page


def test_the_page_on_commands_has_a_link_for_each() -> None:
    page = TEXTS["docs/command_line.md"]
    assert sorted(re.findall(r"\[`(\w+)`\]\(", page)) == sorted(program.commands)


@pytest.mark.parametrize("address", ["", "https://example.org/someone/goodgain/"])
def test_the_readme_of_a_release_has_links_that_work_on_pypi(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOODGAIN_REPOSITORY", address)
    fields = ProjectMetadata(str(ROOT), PluginManager()).core
    at = f"https://example.org/someone/goodgain/blob/v{gg.__version__}/"
    assert fields.urls.get("Changelog") == (f"{at}CHANGELOG.md" if address else None)
    written = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = fields.readme.replace(at, "").replace(at.replace("/blob/", "/raw/"), "")
    assert shown == written
    relative = re.findall(r"\]\((?!https://)", fields.readme)
    assert bool(relative) is not bool(address)
