"""A format of another package: installed for real, found by its entry point, and no different from one of ours."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

PLUGIN = Path(__file__).parent / "plugin"
SOURCE = Path(__file__).parents[3] / "src"

_PROGRAM = """
import json, sys
sys.path[:0] = [{target!r}, {source!r}]
from goodgain.errors import InputError
from goodgain.logs.traces import formats, read_traces
try:
    rows = read_traces(sys.argv[1]).select("query_id", "iteration", "rank", "doc_id").rows()
    print(json.dumps([list(formats()), rows]))
except InputError as error:
    print(json.dumps(str(error)))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the plugin as pip would install it: its package, and metadata that name its entry point.

    Built by hand, so that the test needs neither a network nor a build tool; `plugin/pyproject.toml` says the same.
    """
    import tomllib

    project = tomllib.loads((PLUGIN / "pyproject.toml").read_text())["project"]
    target = tmp_path_factory.mktemp("site")
    package = target / "goodgain_ndlog"
    package.mkdir()
    (package / "__init__.py").write_text((PLUGIN / "goodgain_ndlog" / "__init__.py").read_text())
    info = target / f"goodgain_ndlog-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    points = [
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in entries.items())
        for group, entries in project["entry-points"].items()
    ]
    (info / "entry_points.txt").write_text("\n".join(points))
    return target


def _run(installed: Path, trace: Path) -> object:
    program = _PROGRAM.format(target=str(installed), source=str(SOURCE))
    done = subprocess.run([sys.executable, "-c", program, str(trace)], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.slow
def test_an_installed_plugin_is_found_and_reads_its_format(installed: Path, tmp_path: Path) -> None:
    trace = tmp_path / "q1.log"
    trace.write_text("ask What?\nsearch a\nhit d1\nhit d2\nsearch b\n")
    names, rows = _run(installed, trace)  # type: ignore[misc]  # a pair
    assert "ndlog" in names and "openai_chat" in names
    assert rows == [["q1", 1, 1, "d1"], ["q1", 1, 2, "d2"], ["q1", 2, 0, None]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("entry", "fault"),
    [
        ("atif = goodgain_ndlog", "a format atif exists already"),
        ("broken = goodgain_no_such_module", "plugin goodgain_no_such_module: cannot be used"),
    ],
)
def test_a_plugin_that_takes_a_name_of_ours_or_cannot_be_imported_is_an_error(
    installed: Path, tmp_path: Path, entry: str, fault: str
) -> None:
    (points,) = installed.glob("*.dist-info/entry_points.txt")
    before = points.read_text()
    points.write_text(f"[goodgain.traces]\n{entry}\n")
    try:
        trace = tmp_path / "q1.log"
        trace.write_text("ask What?\n")
        assert fault in str(_run(installed, trace))
    finally:
        points.write_text(before)
