# Everything a machine needs beyond Python 3.11+, make and pip is made here.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
UV     := $(BIN)/uv
STAMP  := $(VENV)/.synced
SPARK_ROOT := build/spark
SPARK  := $(SPARK_ROOT)/pyspark

# The suite starts some hundred processes: without stored bytecode each of them compiles every module that it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: audit release campaign campaign-short demo docs hashes hashes-write test test-every test-long lint bench browser java test-spark coverage kernels wheel lowest clean help

help:
	@echo "make demo   a synthetic state through all products and their evaluation, in demo-output/"
	@echo "make docs   the documentation as a site, in build/site/; runs the notebooks; names measured tables that are older than the code"
	@echo "make test   the test suite, eight minutes on two cores"
	@echo "make test-every  further cases of what the suite tests in one, three minutes"
	@echo "make test-long  what the test suite samples, whole"
	@echo "make hashes  every configuration, product, verb and page on small records, compared with tests/golden/output_hashes.txt"
	@echo "make hashes-write  that list again, after an intended change of outputs"
	@echo "make test-spark  tests of engines on Apache Spark, where there is Java"
	@echo "make campaign  kills, faults, bad input, fuzz, mutants, audits and property tests by seed, for hours; SEED=N HOURS=H PARTS=a,b FUZZ=MINUTES"
	@echo "make campaign-short  two minutes of it, the same trials every time"
	@echo "make release  wheel and sdist (built twice, same bytes), CycloneDX list of parts, licenses and hashes, in dist/"
	@echo "make audit  known vulnerabilities of the locked dependencies; needs the network beyond package registries"
	@echo "make coverage  the suite with its lines counted; at least nine in ten"
	@echo "make lint   formatting, lints, types, import contracts"
	@echo "make bench  the benchmarks, tables to standard output"
	@echo "make wheel  wheel and sdist in dist/, each tried in an empty environment (WITH=\"3.12 3.13\" for other interpreters)"
	@echo "make lowest  the same with the lowest versions that pyproject.toml allows"
	@echo "make browser  Debian's Chromium for the tests of pages (part of make test)"

$(STAMP): pyproject.toml uv.lock
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "uv==0.13.9"
	UV_PROJECT_ENVIRONMENT=$(VENV) $(UV) sync --quiet --locked --compile-bytecode --python $(BIN)/python
	@touch $@

demo: $(STAMP)
	$(BIN)/censafe demo demo-output

# The site needs no network: no fonts, scripts or pictures from elsewhere. A broken link or a failing notebook stops it.
docs: $(STAMP) kernels
	PYTHONPATH=src $(BIN)/mkdocs build --quiet
	@$(BIN)/python docs/measured.py
	@echo "open build/site/index.html"

# Pages are tested in Debian's Chromium. Where it cannot be installed the tests say so: they skip, and fail in CI.
browser:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || \
	if command -v apt-get >/dev/null 2>&1 && [ "$$(id -u)" = 0 ]; then \
		(apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends chromium) \
		>/dev/null || echo "Chromium could not be installed; tests of pages will not run" >&2; \
	else echo "No Chromium here; tests of pages will not run (apt-get install chromium)" >&2; fi

# Apache Spark needs Java: Debian's, without a display. Where it cannot be installed the tests say so: they do not run, and fail in CI.
java:
	@command -v java >/dev/null || \
	if command -v apt-get >/dev/null 2>&1 && [ "$$(id -u)" = 0 ]; then \
		(apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends openjdk-17-jre-headless) \
		>/dev/null || echo "Java could not be installed; tests on Apache Spark will not run" >&2; \
	else echo "No Java here; tests on Apache Spark will not run (apt-get install openjdk-17-jre-headless)" >&2; fi

# Beside the environment, since its Python package has the name of the client's.
$(SPARK): | $(STAMP)
	$(UV) pip install --quiet --python $(BIN)/python --no-deps --target $(SPARK_ROOT) "pyspark==4.2.0"

# Tracing slows the compiler down, and two workers would both compile: so it is done before the tests.
kernels: $(STAMP)
	$(BIN)/python tests/support/compile_kernels.py

test: $(STAMP) browser kernels
	$(BIN)/python -m pytest -n 2 --dist worksteal

# Further products, forms, faults and moments of what the suite tests in one case: tests/every.txt.
test-every: $(STAMP) browser kernels
	$(BIN)/python -m pytest -n 2 --dist worksteal -m every

# What the suite samples, whole: larger populations, more noise draws, more points of failure.
test-long: $(STAMP) browser kernels
	$(BIN)/python -m pytest -n 2 --dist worksteal -m long

# Of all that the program writes and prints: a change that is meant to change no output leaves the list as it is.
hashes: $(STAMP) kernels
	$(BIN)/python tests/support/output_hashes.py

hashes-write: $(STAMP) kernels
	$(BIN)/python tests/support/output_hashes.py --write

# Apart from the suite, which has to stay short: a query on Apache Spark takes longer than the test that asks it.
test-spark: $(STAMP) kernels java
	@if command -v java >/dev/null; then $(MAKE) --no-print-directory $(SPARK) && SPARK_HOME=$(abspath $(SPARK)) $(BIN)/python -m pytest tests/engines -m "long or not long" -k "spark or lost_workers"; \
	elif [ -n "$$CI" ]; then echo "no Java, and CI always has it" >&2; exit 1; fi

# Trials are drawn from the seed; the same command goes on where it stopped. Report and figures lie in campaign-results/.
campaign: $(STAMP)
	$(BIN)/python -m campaign --hours $(or $(HOURS),8) $(if $(SEED),--seed $(SEED)) $(if $(PARTS),--parts $(PARTS)) $(if $(FUZZ),--fuzz-minutes $(FUZZ))

campaign-short: $(STAMP)
	$(BIN)/python -m campaign --short

release: $(STAMP)
	$(BIN)/python packaging/release.py dist --twice

# Fails where the service of advisories cannot be asked: an audit that saw nothing is no audit. So it is part of release.yml, not of .ci/run.
audit: $(STAMP)
	@mkdir -p build
	$(UV) export --quiet --frozen --no-dev --no-emit-project --format requirements.txt --output-file build/locked.txt >/dev/null
	$(UV) tool run --quiet "pip-audit==2.10.1" --requirement build/locked.txt --disable-pip --strict

# The suite again with its lines counted, which takes one and a half times as long.
coverage: $(STAMP) browser kernels
	rm -f .coverage .coverage.*
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not long" --cov --cov-report=
	$(BIN)/coverage report

lint: $(STAMP)
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(STAMP)
	$(BIN)/python benchmarks/noise.py
	$(BIN)/python benchmarks/phsafe_scale.py --persons 1000000
	$(BIN)/python benchmarks/safetab_scale.py --product safetab-p --records 1000000
	$(BIN)/python benchmarks/safetab_scale.py --product safetab-h --records 400000

wheel: $(STAMP)
	$(BIN)/python packaging/try_wheel.py --demo $(foreach one,$(WITH),--python $(one))

lowest: $(STAMP)
	$(BIN)/python packaging/try_wheel.py --lowest

clean:
	rm -rf $(VENV) build demo-output .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage .coverage.*
