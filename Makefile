# Every command a person or CI runs. The work is in ops/scripts; this file says what there is.
# Options, where a command takes them: PORT (the front door of `make run`), FILTER (one suite or test of `make test`),
# FIRST, SEEDS and SEED (of `make simulate`), SECONDS, TARGET and SEED (of `make fuzz`).

SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help run test compat simulate fuzz bench lint format migrate ask smoke clean-local

PORT ?= 8080
FILTER ?=
FIRST ?= 1
SEEDS ?= 100000
SEED ?=
SECONDS ?= 30
TARGET ?=

help: ## List these commands
	@sed -n 's/^\([a-z-]*\): .*## \(.*\)/\1|\2/p' $(firstword $(MAKEFILE_LIST)) | \
		while IFS='|' read -r name text; do printf '  make %-12s %s\n' "$$name" "$$text"; done

run: ## Start everything on http://localhost:8080 with real postings in it (PORT=8100 for another port)
	@exec ops/scripts/run "$(PORT)"

test: ## Build with warnings as errors and run every test (FILTER=Name for one Swift suite)
	@exec ops/scripts/test "$(FILTER)"

compat: ## Run the last release's own suite on this schema: its services serve on while a new one is rolled out
	@exec ops/scripts/compat

simulate: ## Run the chat under more schedules (SEEDS=100000 FIRST=1), or under one with its trace (SEED=7)
	@exec ops/scripts/simulate "$(FIRST)" "$(SEEDS)" "$(SEED)"

fuzz: ## Feed each parser by chance for SECONDS=30 (TARGET=multipart for one, and SEED=7 for one round of it)
	@exec ops/scripts/fuzz "$(SECONDS)" "$(TARGET)" "$(SEED)"

bench: ## Measure against nginx, pgbench and FastAPI on this machine, and print the ratios
	@exec ops/scripts/bench

lint: ## Check doors, sizes and house rules, the shell scripts, and Swift formatting
	@exec ops/scripts/lint

format: ## Format the Swift sources with the toolchain's swift-format
	@exec ops/scripts/lint --format

migrate: ## Bring the database in MARTLET_DATABASE_URL (or that of `make run`) to the newest schema
	@exec ops/scripts/migrate

ask: ## Ask the stack of `make run` whether its main paths answer
	@exec ops/scripts/ask "$(PORT)"

smoke: ## Build the images, bring the deployment up at scale, kill and roll its services under load, take it down
	@exec ops/scripts/smoke

clean-local: ## Stop what `make run` started and delete its data (.local), keeping the build
	@exec ops/scripts/clean-local
