# The menu. Every check has one definition, which CI and pre-commit call too.
# Needs Python 3.11+, git and make; everything else comes from the package index.

PYTHON ?= python3
# Inside an active virtual environment that one is used; otherwise one is made here.
VENV := $(if $(VIRTUAL_ENV),$(VIRTUAL_ENV),.venv)
BIN := $(VENV)/bin
RUN := $(BIN)/python -X utf8
# Unset for everything, so that a developer's own settings never decide a test. Without bytecode,
# each of the many processes that the tests start would compile every module that it imports.
unexport MIND_HOME MIND_PROJECT SANDBOX_DIR PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test test-area test-core test-long test-root test-adapters test-postgres test-clients test-protocol test-browser test-shells shells test-lowest setup lock check collect format lint types layers sizes spelling fix generate \
        picture picture-web transcripts screens tasks tools coverage coverage-of-requirements redteam torture concurrent stopped histories fuzz dependencies mutants bench bench-asks bench-retrieval bench-scale bench-soak bench-limits model \
        dist sbom audit mcpb release-check clean

help:           ## Show this menu
	@grep -E '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 28

demo: $(VENV)/.runtime ## Install, then show what mind is for, with a small story
	@$(BIN)/mind demo

# Inputs that the fuzzer found are tried with each change; its corpus each week.
FUZZED := fuzz/test_fuzz.py::test_an_input_that_failed_once

test: setup     ## Install what the tests need, then run every gate
	@$(MAKE) --no-print-directory --jobs 2 check collect
	$(RUN) -m pytest -q -n auto --dist worksteal tests $(FUZZED)

# The pages and the fuzzer are about extensions, too.
test-core: setup ## Run the tests of the core alone, which pass without the folder of extensions
	$(RUN) -m pytest -q -n auto --dist worksteal tests --ignore=tests/extensions --ignore=tests/docs

test-area: setup ## Run the tests of one area, with its transcripts (AREA=features/pitfalls)
	$(RUN) -m pytest -q -n auto tests/$(AREA) tests/test_transcripts.py -k $(notdir $(AREA))

test-long: setup ## Run what takes long: other examples of property tests, the fuzzer's corpus, the labels of the measurements
	$(RUN) -m pytest -q -n auto --dist worksteal tests/properties tests/index fuzz bench --hypothesis-profile=random --randomly-seed=$(or $(SEED),2)

picture: setup  ## Draw the picture of `mind browse` on its docs page again
	$(RUN) scripts/browse_picture.py

picture-web: setup ## Take the pictures of `mind web` on its docs page again (needs what test-browser installs)
	$(RUN) -m tests.extensions.web.pictures docs/images

test-browser: setup ## Test the viewer in Chromium, which is installed if it is missing (as root, with apt-get)
	@command -v chromedriver > /dev/null || { test "$$(id -u)" = 0 && command -v apt-get > /dev/null && \
		apt-get update -q && apt-get install -q -y --no-install-recommends chromium chromium-driver; } || \
		{ echo "install Chromium and its driver first"; exit 1; }
	$(BIN)/python scripts/groups.py browser > $(VENV)/browser-requirements.txt
	$(BIN)/uv pip install --quiet --python $(BIN)/python -r $(VENV)/browser-requirements.txt
	$(RUN) -m pytest -q tests/extensions/web/test_browser*.py

ADAPTERS := $(VENV)/.adapters$(if $(RESOLUTION),-$(RESOLUTION))

test-adapters: $(ADAPTERS)/.made ## Test the adapters with the real packages of other frameworks (RESOLUTION=lowest-direct for their lowest versions)
	$(ADAPTERS)/bin/python -X utf8 -m pytest -q tests/extensions/adapters

$(ADAPTERS)/.made: pyproject.toml scripts/groups.py | $(VENV)/.tests
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(ADAPTERS)
	$(BIN)/uv pip install --quiet --python $(ADAPTERS)/bin/python $(if $(RESOLUTION),--resolution $(RESOLUTION)) --editable ".[anthropic,langgraph,openai-agents]"
	$(BIN)/uv pip freeze --quiet --python $(ADAPTERS)/bin/python --exclude-editable > $(ADAPTERS)/versions.txt
	$(BIN)/uv pip install --quiet --python $(ADAPTERS)/bin/python --constraint $(ADAPTERS)/versions.txt -r $(VENV)/test-requirements.txt
	@touch $@

# As root also where the system refuses namespaces to others.
ROOT_TESTS := tests/redteam/test_two_users.py tests/project/test_watch_limits.py tests/test_network.py

test-root: setup ## Run the tests that need root or namespaces, with sudo; fails if one is skipped
	@$(if $(filter-out 0,$(shell id -u)),sudo) $(RUN) -m pytest -q -p no:cacheprovider $(ROOT_TESTS) > $(VENV)/root.txt; \
		status=$$?; cat $(VENV)/root.txt; test $$status = 0 && ! grep -q '^SKIPPED' $(VENV)/root.txt

test-postgres: setup ## Test the shared index with real servers, PostgreSQL 16 with pgvector 0.6 and 0.8 (part of `make test`)
	$(RUN) -m pytest -q -n auto tests/extensions/team/postgres

test-clients: setup ## Run real clients (from npm) with mind and a model of this machine, without any account (CLIENTS=NAMES)
	$(RUN) -m clients $(or $(CLIENTS),--write docs/clients.md)
	$(RUN) -m clients $(CLIENTS) --sessions

test-protocol: setup ## Run the conformance suite of MCP and the Inspector (from npm) against the server, and write docs/lab/conformance.md
	$(RUN) -m clients.protocol --write docs/lab/conformance.md

coverage: setup ## Run the tests, and list the lines and branches that none reaches (takes twice as long)
	$(RUN) -m coverage erase
	$(RUN) -m coverage run -m pytest -q -n auto --dist worksteal
	$(RUN) -m coverage combine --quiet
	$(RUN) -m coverage report

# Those that go through the libraries of pyproject.toml, but none of speed, large files or signals.
LOWEST_TESTS := $(addprefix tests/, test_config.py rendering when/test_grammar.py \
	cli/test_command_line.py cli/test_help.py cli/test_asking.py \
	$(addprefix cli/test_guided_review.py::test_, \
		each_version_is_chosen_by_one_key quitting_changes_nothing) \
	extensions/browse/test_screen.py extensions/sessions/test_codex.py features/clients/test_clients.py \
	features/clients/test_client_formats.py features/pitfalls/test_matching.py extensions/web/test_gate.py \
	index/test_cosine.py index/test_embedding_languages.py index/test_embedding_encoder.py \
	index/test_embedding_packaged.py index/test_vectors.py \
	memory/test_chunks.py memory/test_codec.py extensions/team/postgres/test_migrations.py privacy/test_personal.py \
	$(addprefix extensions/team/test_http.py::test_, \
		a_memory_is_stored_in_the_project_that_the_client_names \
		sessions_at_the_same_time_see_only_their_own_project only_the_users_own_clients_come_in \
		roots_name_the_project_of_an_older_client a_wrong_tool_is_an_error_of_the_protocol) \
	server/test_tools.py \
	$(addprefix server/test_subscriptions.py::test_, \
		a_listening_client_hears_of_changes_to_what_it_follows \
		a_subscribed_client_hears_until_it_unsubscribes) \
	server/test_listing.py::test_a_client_of_the_newer_protocol_follows_over_a_pipe \
	server/test_procedures_over_pipe.py::test_a_call_reports_progress_and_cancelling_it_stops_the_run \
	$(addprefix server/test_stdio.py::test_, \
		a_memory_stored_over_the_pipe_is_found_and_read_as_a_resource \
		a_missing_resource_is_an_error_of_the_protocol \
		malformed_input_leaves_the_server_working_and_stdout_clean) \
	$(addprefix extensions/team/test_team.py::test_, \
		a_revoked_token_ends_open_sessions_and_streams \
		the_server_is_ready_and_shows_open_metrics_without_a_token) \
	project/test_log_memories.py project/test_watch.py \
	text/test_patterns.py text/test_tokens.py) \
	-k 'not (linear or long_to_cut or too_large or thousands or killed_server or no_client_out or signal)'

test-shells: setup shells ## Complete command lines in the real shells (installs zsh and fish on Debian, as root)
	$(RUN) -m pytest -q -n auto tests/cli/test_shells.py

shells:
	@{ command -v zsh && command -v fish; } > /dev/null || \
	  { apt-get update -qq && apt-get install --yes -qq --no-install-recommends zsh fish; } > /dev/null

test-lowest: $(VENV)/.lowest/.made ## Run tests with the lowest versions that pyproject.toml allows (TESTS=tests for all)
	$(VENV)/.lowest/bin/python -X utf8 -m pytest -q -n auto --dist worksteal $(or $(TESTS),$(LOWEST_TESTS))

$(VENV)/.lowest/.made: pyproject.toml scripts/groups.py | $(VENV)/.tests
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(VENV)/.lowest
	$(BIN)/uv pip install --quiet --python $(VENV)/.lowest/bin/python --resolution lowest-direct --editable ".[phone,postgres,tui,zstd]"
	$(BIN)/uv pip freeze --quiet --python $(VENV)/.lowest/bin/python --exclude-editable > $(VENV)/lowest-versions.txt
	$(BIN)/uv pip install --quiet --python $(VENV)/.lowest/bin/python --constraint $(VENV)/lowest-versions.txt -r $(VENV)/test-requirements.txt
	@touch $@

setup: $(VENV)/.tests ## Make the development environment, with the locked versions (LOCK= for the newest)

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.runtime: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

# The packages of the development environment, each with the hashes of its files.
LOCK ?= requirements-dev.txt

# uv takes a tenth of the time that pip takes, and installs the lowest versions too.
$(BIN)/uv: | $(BIN)/python
	@sed -n '/^uv==/,/[^\]$$/p' requirements-dev.txt > $(VENV)/uv-requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $(VENV)/uv-requirements.txt

$(VENV)/.tests: pyproject.toml scripts/groups.py $(LOCK) | $(BIN)/uv
	$(BIN)/python scripts/groups.py test > $(VENV)/test-requirements.txt
	$(BIN)/uv pip install --quiet --python $(BIN)/python $(if $(LOCK),--require-hashes -r $(LOCK),--upgrade -r $(VENV)/test-requirements.txt -r pyproject.toml)
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@touch $(VENV)/.runtime $@

lock: $(BIN)/uv ## Write requirements-dev.txt again after a change of pyproject.toml (UPGRADE=1 for the newest versions)
	$(BIN)/uv pip compile --quiet pyproject.toml --group test --extra phone --extra tui --extra zstd --universal --python-version 3.11 \
		--generate-hashes --no-annotate --no-emit-index-url --no-emit-find-links \
		--custom-compile-command "make lock" $(if $(UPGRADE),--upgrade) --output-file requirements-dev.txt

check: format lint types layers sizes spelling ## Run the static checks

collect:        ## Import and compile every test, once for all processes that will run them
	@$(RUN) -m pytest -qq --collect-only > $(VENV)/collected.txt || { cat $(VENV)/collected.txt; exit 1; }

format:         ## Check the formatting
	$(BIN)/ruff format --check --quiet .

lint:           ## Check the style and the usual mistakes
	$(BIN)/ruff check --quiet .

types:          ## Check the types
	$(BIN)/mypy

layers:         ## Check that imports point one way
	$(BIN)/lint-imports --config .importlinter --no-cache

sizes:          ## Check that modules and functions stay small, and commands enter few of them
	$(RUN) scripts/sizes.py

spelling:       ## Check the spelling, and texts and names against the list of words
	$(BIN)/codespell mimo tests bench fuzz clients scripts docs README.md CONTRIBUTING.md CHANGELOG.md ARCHITECTURE.md
	$(RUN) scripts/words.py

fix:            ## Format, and mend what can be mended
	$(BIN)/ruff check --fix --quiet . ; $(BIN)/ruff format --quiet .

# The time of the last commit is the time of every file in a release, so that builds are repeatable.
EPOCH = $(shell git log -1 --format=%ct 2> /dev/null || echo 1577836800)

dist: setup     ## Build the wheel and the source package in dist/, the same bytes for the same commit
	rm -rf dist/*.whl dist/*.tar.gz
	SOURCE_DATE_EPOCH=$(EPOCH) $(BIN)/python -m hatchling build -d dist

# Tools for releases, in an environment of their own.
$(VENV)/.release/.made: pyproject.toml scripts/groups.py | $(VENV)/.tests
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(VENV)/.release
	$(BIN)/python scripts/groups.py release > $(VENV)/release-requirements.txt
	$(BIN)/uv pip install --quiet --python $(VENV)/.release/bin/python -r $(VENV)/release-requirements.txt
	@touch $@

sbom: dist $(VENV)/.release/.made ## Write dist/mimo.cdx.json: the packages that a user gets, in CycloneDX
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(VENV)/.sbom
	$(BIN)/uv pip install --quiet --python $(VENV)/.sbom/bin/python --constraint requirements-dev.txt dist/*.whl
	$(VENV)/.release/bin/cyclonedx-py environment --pyproject pyproject.toml --mc-type application \
		--output-reproducible --spec-version 1.6 --output-file dist/mimo.cdx.json $(VENV)/.sbom/bin/python
	$(VENV)/.release/bin/python scripts/sbom.py dist/mimo.cdx.json

audit: $(VENV)/.release/.made ## Look up the locked packages in the database of known vulnerabilities
	$(VENV)/.release/bin/pip-audit --strict --disable-pip --require-hashes --requirement requirements-dev.txt

mcpb: dist      ## Build dist/mind-VERSION.mcpb, check it with the real tool (npm), and start its server
	$(RUN) scripts/mcpb.py dist
	npm exec --yes --package @anthropic-ai/mcpb@2.1.2 -- mcpb validate dist/mcpb/manifest.json
	$(RUN) scripts/mcpb.py --try dist

release-check: setup ## Check that a release can be made (TAG=v1.2.3 for an existing tag); see docs/releasing.md
	$(RUN) scripts/release.py $(if $(TAG),--tag "$$TAG")

transcripts: setup ## Run the commands on the docs pages and in transcripts, and write their output into these (ONLY=NAME for those with a name in their path)
	MIND_RECORD=1 $(RUN) -m pytest -q tests/docs tests/test_transcripts.py tests/extensions -k 'test_transcripts and shows$(if $(ONLY), and $(ONLY))'

screens: setup  ## Take the pictures of the README and of docs/screens.md again, from real runs
	$(RUN) -m scripts.screens

tasks: setup    ## Count the keystrokes and lines of ten tasks again, for docs/lab/ten-tasks.md
	$(RUN) -m scripts.ten_tasks

generate: setup ## Write man pages, completions and the reference again
	$(RUN) scripts/generate.py

coverage-of-requirements: setup ## List the numbered requirements that no test carries (REQUIREMENTS=FILE)
	$(RUN) scripts/requirements_coverage.py $(REQUIREMENTS)

tools: setup    ## Count the tokens of the list of tools, and measure how well its texts separate them, for docs/tools.md and docs/lab/tools.md
	$(BIN)/python scripts/groups.py tokens > $(VENV)/tokens-requirements.txt
	$(BIN)/uv pip install --quiet --python $(BIN)/python -r $(VENV)/tokens-requirements.txt
	$(RUN) -m scripts.tool_list

redteam: setup  ## Run the attacks, and count by kind how many got through
	$(RUN) scripts/redteam.py -n auto

TORTURE = $(RUN) -m bench.torture --seed $(or $(SEED),1) --jobs $(or $(JOBS),2) --state build/torture $(if $(WRITE),--write $(WRITE))

torture: setup  ## Let calls of writing commands fail, then the power, and check what is left (MINUTES=60 SEED=1 JOBS=2 WRITE=docs/lab/reliability.md); goes on where it stopped
	$(TORTURE) --minutes $(or $(MINUTES),60)
	$(TORTURE) --minutes $(or $(MINUTES),60) --power

concurrent: setup ## Let processes of all kinds work on one project, and check the history (PROCESSES=8 OPERATIONS=10000 SEED=1 MINUTES=600 WRITE=docs/lab/reliability.md)
	$(RUN) -m bench.concurrent --processes $(or $(PROCESSES),8) --operations $(or $(OPERATIONS),10000) --seed $(or $(SEED),1) --minutes $(or $(MINUTES),600) $(if $(WRITE),--write $(WRITE))

stopped: setup  ## Stop commands at each lock, and run others meanwhile (MINUTES=60 WRITE=docs/lab/reliability.md; ALL=1 for each lock of each command)
	$(RUN) -m bench.concurrent.stopped --minutes $(or $(MINUTES),60) $(if $(ALL),--all) $(if $(WRITE),--write $(WRITE))

histories: setup ## Merge, rebase, pick and revert in random git histories, and check that no text is lost (HISTORIES=1000 SEED=1 JOBS=2 MINUTES=60 WRITE=docs/lab/reliability.md)
	$(RUN) -m bench.histories --histories $(or $(HISTORIES),1000) --seed $(or $(SEED),1) --jobs $(or $(JOBS),2) $(if $(MINUTES),--minutes $(MINUTES)) $(if $(WRITE),--write $(WRITE))

dependencies: setup ## Write the table of docs/lab/dependencies.md again
	$(RUN) -m scripts.dependencies

fuzz: setup     ## Fuzz the parsers, guided by coverage (MINUTES=1 for each, TARGET="memory merge", SEED=1, JOBS=1, KEEP=1 for the corpus and the sums, WRITE=docs/lab/reliability.md)
	$(BIN)/python scripts/groups.py fuzz > $(VENV)/fuzz-requirements.txt
	$(BIN)/uv pip install --quiet --python $(BIN)/python -r $(VENV)/fuzz-requirements.txt
	$(RUN) -m fuzz $(TARGET) --minutes $(or $(MINUTES),1) --seed $(or $(SEED),1) --jobs $(or $(JOBS),1) $(if $(KEEP),--keep) $(if $(WRITE),--write $(WRITE))

bench: setup    ## Measure what users meet, beside other tools from npm and PyPI, and write docs/how-fast-it-is.md and docs/lab/benchmarks.md (TOOLS="qmd jrnl" for these alone, TOOLS=none; LARGEST=100000 takes a quarter of an hour more; MARKDOWN=FOLDER has more real notes)
	$(RUN) -m bench.peers $(or $(TOOLS),all)
	$(RUN) -m bench.speed --write $(if $(MARKDOWN),--markdown $(MARKDOWN)) $(if $(LARGEST),--largest $(LARGEST)) $(if $(TOOLS),--tools $(TOOLS))

bench-asks: setup ## Measure finding, the score and speaking unasked on stores such as teams keep (STORES=NAMES)
	$(RUN) -m bench.asks $(STORES)

bench-retrieval: setup ## Measure the ranking on labelled data (BENCH=FOLDER that holds eval/ and data/)
	$(RUN) -m bench.retrieval --bench $(BENCH)

mutants: setup  ## Change the code in 60 ways, and list those that no test notices
	$(RUN) -m bench.mutants

bench-scale: setup ## Measure the local index and PostgreSQL by size and clients (SIZES=1000,100000,1000000)
	$(RUN) -m bench.scale

bench-soak: setup ## Let servers answer many requests and the daemon see many changes; fails if something grows (REQUESTS=1000000 BURSTS=100000 MINUTES= ONLY="stdio http daemon" WRITE=docs/lab/reliability.md)
	$(RUN) -m bench.soak $(ONLY) --requests $(or $(REQUESTS),1000000) --bursts $(or $(BURSTS),100000) $(if $(MINUTES),--minutes $(MINUTES)) $(if $(WRITE),--write $(WRITE))

bench-limits: setup ## Measure large stores, notes, numbers of links and of projects (ONLY="note links" MEMORIES=1000000 WRITE=docs/lab/reliability.md)
	$(RUN) -m bench.limits $(ONLY) --memories $(or $(MEMORIES),1000000) $(if $(WRITE),--write $(WRITE))

model: setup    ## Make the packaged models again, byte for byte (needs 5 GB for the tools of the static one, and npm)
	$(PYTHON) -m venv .venv-model
	$(PYTHON) scripts/groups.py model > .venv-model/requirements.txt
	.venv-model/bin/python -m pip install --quiet -r .venv-model/requirements.txt
	.venv-model/bin/python scripts/build_model.py
	$(RUN) -m scripts.build_encoder
	$(RUN) -m scripts.build_languages

clean:          ## Remove what the tools left behind
	rm -rf .coverage* .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache build dist
