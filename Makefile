# Two commands do all the set-up on a machine with Python 3.11 or later, pip and make: make demo, make test.
# make test tries some of the cases, make test-all tries all of them (tests/support/counts.py).
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
# A process for each core. The tests of a file stay together, in their order (tests/conftest.py): they share what is costly to make.
# In make test each process has one thread of Polars: two processes of two threads stand in each other's way.
# Tests start many processes, so what Python compiles is kept.
export PYTHONDONTWRITEBYTECODE =
PARALLEL = --numprocesses auto --dist loadfile --no-loadscope-reorder

.PHONY: demo pictures reference docs test test-all test-oldest test-spark test-hosts mutants fuzz dist check install install-dev bench bench-all clean

demo: $(VENV)/installed
	$(BIN)/python -m goodgain evaluate qrels_examples/late_recovery/qrels.txt qrels_examples/late_recovery/late.run \
	  "nDCG@10 RR@10 R@100 CG SRE SRR nCG IterationsForAllGoodResults" -o table
	$(BIN)/python -m goodgain evaluate qrels_examples/guideline/qrels.txt qrels_examples/guideline/agent.run \
	  "CG@3 RG@3 DCGG@3 DRG@3 AvgGain@3 RAG@3 DRAG@3 SRE@3 SRR@3 IterationsForAllGoodResults" -o table
	$(BIN)/python -m goodgain ledger qrels_examples/guideline/qrels.txt qrels_examples/guideline/agent.run -o table
	@mkdir -p pictures
	$(BIN)/python -m goodgain curve qrels_examples/two_agents/qrels.txt qrels_examples/two_agents/quick.run \
	  qrels_examples/two_agents/late.run -m "nCG SRR" -o table --plot pictures/curve.svg
	$(BIN)/python -m goodgain compare qrels_examples/two_agents/qrels.txt qrels_examples/two_agents/quick.run \
	  qrels_examples/two_agents/late.run -m "nDCG@10 nCG@6" -o table --plot pictures/compared.svg
	$(BIN)/python -m goodgain report qrels_examples/two_agents/qrels.txt qrels_examples/two_agents/quick.run \
	  qrels_examples/two_agents/late.run -m "nDCG@10 nCG@6 SRR@6" --groups qrels_examples/two_agents/groups.csv -o pictures/report.html
	@echo "The report on both agents is $(CURDIR)/pictures/report.html, with $(CURDIR)/pictures/curve.svg and $(CURDIR)/pictures/compared.svg beside it: open them in a browser."

# The pictures of README and docs, from the shipped examples.
pictures: $(VENV)/installed
	$(BIN)/python docs/make_pictures.py

# docs/reference, from declarations, docstrings and --help.
reference: $(VENV)/installed
	$(BIN)/python docs/make_reference.py

# The site: open site/index.html. A broken link is an error.
docs: $(VENV)/installed-docs
	$(BIN)/sphinx-build -c docs --fail-on-warning --keep-going --quiet --fresh-env . site
	cp site/README.html site/index.html

test: $(VENV)/installed-dev
	POLARS_MAX_THREADS=1 $(BIN)/python -m pytest -m "not spark" $(PARALLEL)

test-all: $(VENV)/installed-dev
	GOODGAIN_TESTS=all $(BIN)/python -m pytest -m "not spark" $(PARALLEL)

# The lowest versions that pyproject.toml allows.
test-oldest:
	$(PYTHON) -m venv build/tools
	build/tools/bin/python -m pip install --quiet uv
	build/tools/bin/uv venv --quiet --clear --python $(PYTHON) build/oldest
	build/tools/bin/uv pip install --quiet --python build/oldest/bin/python --resolution lowest-direct --editable ".[dev]"
	POLARS_MAX_THREADS=1 build/oldest/bin/python -m pytest -m "not spark" $(PARALLEL)

test-spark: $(VENV)/installed-spark
	@command -v java >/dev/null || test -x "$$JAVA_HOME/bin/java" || { echo "make test-spark needs Java 17 or later"; exit 1; }
	$(BIN)/python -m pytest -m spark tests/scoring/test_spark.py

# Inspect, MLflow, Phoenix, exporters of logs: their two hundred packages have an environment of their own.
test-hosts: $(VENV)/hosts/installed
	GOODGAIN_TESTS=all $(VENV)/hosts/bin/python -m pytest tests/hosts/test_inspect.py tests/hosts/test_mlflow.py tests/hosts/test_phoenix.py \
	  tests/hosts/test_exporters.py \
	  "tests/test_pages.py::test_the_examples_print_what_the_page_shows[hosts_agents]"

# Random changes of the code that the tests should notice. FOLDERS="analysis/comparing logs/dedup" draws from these; hours, so not in CI.
SEED ?= 1
COUNT ?= 300
mutants: $(VENV)/installed-dev
	$(BIN)/python .ci/mutants.py --seed $(SEED) --count $(COUNT) $(FOLDERS)

# Random input for everything that reads.
SECONDS ?= 600
fuzz: $(VENV)/installed-dev
	$(BIN)/python -m tests.fuzz --seed $(SEED) --seconds $(SECONDS)

# dist/ has what is published: the wheel alone runs README, the sdist passes its own tests.
dist:
	rm -rf dist build/tools build/wheel build/sdist
	$(PYTHON) -m venv build/tools
	build/tools/bin/python -m pip install --quiet build check-wheel-contents twine
	build/tools/bin/python -m build
	build/tools/bin/twine check --strict dist/*
	build/tools/bin/check-wheel-contents dist/*.whl
	$(PYTHON) -m venv build/wheel
	build/wheel/bin/python -m pip install --quiet dist/*.whl
	build/wheel/bin/python .ci/run_readme.py
	mkdir build/sdist
	tar --extract --gzip --strip-components 1 --directory build/sdist --file dist/*.tar.gz
	$(MAKE) --directory build/sdist test PYTHON=$(PYTHON)

check: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python .ci/plain_words.py

bench: $(VENV)/installed-dev
	$(BIN)/python benchmarks/ledger.py
	$(BIN)/python benchmarks/classic.py
	$(BIN)/python benchmarks/growth.py --profile
	$(BIN)/python benchmarks/ranx_host.py
	$(BIN)/python benchmarks/comparing.py
	$(BIN)/python benchmarks/start.py

# Also the two that are heavy: traces makes 2.3 GB first.
bench-all: bench
	$(BIN)/python benchmarks/dedup.py
	$(BIN)/python benchmarks/label_calls.py
	$(BIN)/python benchmarks/traces.py make
	$(BIN)/python benchmarks/traces.py measure

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable ".[report]"
	touch $@

$(VENV)/installed-dev: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	touch $@ $(VENV)/installed

$(VENV)/installed-spark: $(VENV)/installed-dev
	$(BIN)/python -m pip install --quiet --editable ".[dev,spark]"
	touch $@

$(VENV)/hosts/installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)/hosts
	$(VENV)/hosts/bin/python -m pip install --quiet --editable ".[dev,inspect,mlflow,phoenix]" arize-phoenix inspect-scout vibelens
	touch $@

$(VENV)/installed-docs: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable ".[docs]"
	touch $@ $(VENV)/installed

install: $(VENV)/installed
install-dev: $(VENV)/installed-dev

clean:
	rm -rf $(VENV) build dist site pictures jupyter_execute
