"""The hosts are imported only when used; without a host one sentence says how to install it."""

from __future__ import annotations

import subprocess
import sys

import pytest

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
