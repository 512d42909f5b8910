"""The hosts are imported only when used; an ir_measures that loads its providers from entry points loads ours, once and first.

The branch `entry-points` of ir_measures loads them and no release does yet. The tests copy the installed package, and make the
copy load providers as the branch does: from the group `ir_measures.provider`, while `ir_measures.providers` is imported, into
an empty registry, and sorted by PRIORITY.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import ir_measures
import pytest

ROOT = Path(__file__).parents[2]
#: The PRIORITY of each of its providers, in its order.
PRIORITIES = {
    name: number - 10
    for number, name in enumerate(
        ["runtime", "pytrec_eval", "cwl_eval", "compat", "pyndeval", "judged", "msmarco", "gdeval", "accuracy", "ranx"]
    )
}
_LOADING = """
import importlib.metadata
_own = dict(registry)
registry.clear()
_loaded = {one.name: one.load()() for one in importlib.metadata.entry_points(group="ir_measures.provider")}
registry.update(_own | _loaded)
"""
_PROGRAM = """
import importlib, json, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
import ir_measures
qrels = {"q1": {"a": 3, "b": 0}, "q2": {"c": 2}}
run = [ir_measures.ScoredDoc(*row) for row in (("q1", "b", 2.0), ("q1", "a", 1.0), ("q2", "d", 1.0))]
ours = [ir_measures.measures.registry[name]() for name in ("nCG", "SRR")] if "goodgain" in sys.modules else []
measures = [ir_measures.nDCG @ 10, ir_measures.RR @ 10, ir_measures.Accuracy, *ours]
values = ir_measures.calc_aggregate(measures, qrels, run)
print(json.dumps({
    "from": ir_measures.__file__,
    "pipeline": [one.NAME for one in ir_measures.DefaultPipeline.providers],
    "same": ir_measures.DefaultPipeline.providers[0] is ir_measures.providers.registry["goodgain"],
    "values": {str(name): value for name, value in values.items()},
}))
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an ir_measures that loads entry points, and with those of this checkout."""
    folder = tmp_path_factory.mktemp("site")
    package = folder / "ir_measures"
    shutil.copytree(Path(ir_measures.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    with (package / "providers" / "__init__.py").open("a") as file:
        file.write(_LOADING)
    whole = (package / "__init__.py").read_text()
    begin = whole.index("DefaultPipeline = ")
    end = whole.index("evaluator = DefaultPipeline", begin)
    of_own = f"{PRIORITIES}.get(one.NAME, getattr(one, 'PRIORITY', 0.0))"
    ordered = f"sorted(providers.registry.values(), key=lambda one: {of_own})"
    (package / "__init__.py").write_text(
        f"{whole[:begin]}DefaultPipeline = providers.FallbackProvider({ordered})\n{whole[end:]}"
    )
    points = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["ir_measures.provider"]
    about = folder / "goodgain_of_checkout-1.dist-info"
    about.mkdir()
    about.joinpath("METADATA").write_text("Metadata-Version: 2.1\nName: goodgain-of-checkout\nVersion: 1\n")
    lines = "".join(f"{name} = {place}\n" for name, place in points.items())
    about.joinpath("entry_points.txt").write_text(f"[ir_measures.provider]\n{lines}")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("first", [["ir_measures"], ["ir_measures", "goodgain"], ["goodgain"], ["goodgain.hosts.ranx"]])
def test_ir_measures_loads_our_provider_once_and_first(site: Path, first: list[str]) -> None:
    paths = {"PYTHONPATH": f"{site}:{ROOT / 'src'}"}
    ended = subprocess.run(
        [sys.executable, "-c", _PROGRAM, *first], env=paths, capture_output=True, text=True, check=False, cwd=site
    )
    assert ended.returncode == 0, ended.stderr

    data = json.loads(ended.stdout)
    assert data["from"] == str(site / "ir_measures" / "__init__.py")
    assert data["pipeline"][:11] == ["goodgain", *PRIORITIES]
    assert data["pipeline"].count("goodgain") == 1
    assert data["same"]
    assert data["values"] == {
        "nDCG@10": pytest.approx(0.31546, abs=1e-5),
        "RR@10": 0.25,
        "Accuracy": 0.0,
        "nCG": 0.5,
        "SRR": 0.0,
    }


#: The call that needs the host, and the extra.
CALLS = {
    "from goodgain.hosts.inspect import scorer; scorer({'q': {'d': 1}}, 'CG', rel=1)": ("inspect_ai", "inspect"),
    "from goodgain.hosts.mlflow import scorer; scorer({'q': {'d': 1}}, 'CG', rel=1)": ("mlflow", "mlflow"),
    "from goodgain.hosts.mlflow import log_comparison; log_comparison(None)": ("mlflow", "mlflow"),
}


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_importing_goodgain_imports_no_host() -> None:
    hosts = {"inspect_ai", "mlflow", "phoenix", "langfuse", "ranx", "matplotlib", "openai", "click", "rich"}
    modules = ["goodgain", "goodgain.hosts.inspect", "goodgain.hosts.mlflow"]
    code = f"import sys, {', '.join(modules)}; print(sorted({hosts!r} & set(sys.modules)))"
    assert run(code).stdout == "[]\n"
    assert run("import sys, goodgain; print('narwhals' in sys.modules)").stdout == "False\n"  # it takes long


@pytest.mark.slow
@pytest.mark.parametrize("call", CALLS)
def test_a_host_that_is_not_installed_is_one_sentence_with_its_extra(call: str) -> None:
    package, extra = CALLS[call]
    done = run(f"import sys; sys.modules[{package!r}] = None; {call}")
    error = f'goodgain.errors.InputError: {package} is not installed: pip install "goodgain[{extra}]"'
    assert done.stderr.splitlines()[-1] == error
