# Every command a person or CI runs. The work is in ops/scripts; this file says what there is.
# Options, where a command takes them: FILTER (one suite or test of `make test`).

SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help test lint format

FILTER ?=

help: ## List these commands
	@sed -n 's/^\([a-z-]*\): .*## \(.*\)/\1|\2/p' $(firstword $(MAKEFILE_LIST)) | \
		while IFS='|' read -r name text; do printf '  make %-12s %s\n' "$$name" "$$text"; done

test: ## Build with warnings as errors and run every test (FILTER=Name for one Swift suite)
	@exec ops/scripts/test "$(FILTER)"

lint: ## Check doors, sizes and house rules, the shell scripts, and Swift formatting
	@exec ops/scripts/lint

format: ## Format the Swift sources with the toolchain's swift-format
	@exec ops/scripts/lint --format
