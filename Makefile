# Commands of the project. `make` alone lists them.
GO            ?= go
GO_TEST_FLAGS ?= -count=1
# The race detector needs a C compiler.
RACE          ?= $(shell command -v $$($(GO) env CC) >/dev/null 2>&1 && [ "$$($(GO) env CGO_ENABLED)" = 1 ] && echo -race)
LINT          := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
DEMO          ?= 20
UP_FLAGS      ?=

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the commands
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-14s %s\n", $$1, $$2}'

.PHONY: build
build: ## Build bin/ebb
	CGO_ENABLED=0 $(GO) build -o bin/ebb ./cmd/ebb

.PHONY: run
run: build ## Run the whole pipeline in one process, with a demo of 20 orders
	./bin/ebb up --demo $(DEMO) $(UP_FLAGS)

.PHONY: test
test: ## Run all tests, with the race detector where there is a C compiler
	$(GO) vet ./...
	$(GO) test $(GO_TEST_FLAGS) ./journal/saga
	$(GO) run ./internal/testkit/withpg -- $(GO) test $(RACE) $(GO_TEST_FLAGS) ./...

.PHONY: examples
examples: ## Test the examples, which are a module of their own
	cd examples && $(GO) test $(GO_TEST_FLAGS) ./...

.PHONY: e2e
e2e: ## Kill everything at random in the middle of 300 orders
	$(GO) test -tags e2e $(GO_TEST_FLAGS) -timeout 30m -v ./test/e2e

.PHONY: bench
bench: ## Measure throughput, latency and cost side by side with plain loops
	cd bench && $(GO) run . $(BENCH_FLAGS)

.PHONY: browser
browser: ## Check the order page in a real Chromium, which is installed if there is none
	test/browser/run

.PHONY: lint
lint: ## Check style and the import arrows of the layout
	$(GO) run $(LINT) run ./...

.PHONY: generate
generate: ## Generate the Go types of the schemas
	$(GO) generate ./schemas

.PHONY: clean
clean: ## Remove what was built and what `make run` keeps
	rm -rf bin .ebb
