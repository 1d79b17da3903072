# Everything a person or CI does with this repository. GO may name another toolchain.
GO       ?= go
BIN      := bin/gpuctl
TOOLS    := build/tools
GOLANGCI := v2.15.0

.PHONY: all build test test-unit test-lab test-full lint cross fuzz bench bench-quick schema docs demo demo-down clean

all: build

# A static binary; version and commit are what the Go toolchain stamps from git.
build:
	CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=auto -ldflags '-s -w' -o $(BIN) ./cmd/gpuctl

test:
	$(GO) run ./scripts/test

test-unit:
	$(GO) run ./scripts/test -only unit

test-lab:
	$(GO) run ./scripts/test -only lab-unit,standin,lab

test-full:
	$(GO) run ./scripts/test -full

# Clients run on macOS and Windows too.
cross:
	GOOS=darwin GOARCH=arm64 CGO_ENABLED=0 $(GO) vet ./cmd/gpuctl ./bootstrap/... ./internal/... ./provision/... ./charts/...
	GOOS=windows GOARCH=amd64 CGO_ENABLED=0 $(GO) vet ./cmd/gpuctl ./bootstrap/... ./internal/... ./provision/... ./charts/...
	GOOS=darwin GOARCH=arm64 CGO_ENABLED=0 $(GO) build -o build/cross/gpuctl-darwin-arm64 ./cmd/gpuctl
	GOOS=windows GOARCH=amd64 CGO_ENABLED=0 $(GO) build -o build/cross/gpuctl-windows-amd64.exe ./cmd/gpuctl

lint: $(TOOLS)/golangci-lint-$(GOLANGCI)
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); echo 'gofmt would change these'; exit 1; }
	$(TOOLS)/golangci-lint-$(GOLANGCI) run ./...
	scripts/shellcheck
	scripts/licences
	scripts/vulnerabilities

$(TOOLS)/golangci-lint-$(GOLANGCI):
	@mkdir -p $(TOOLS)
	GOBIN=$(abspath $(TOOLS)) nice $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI)
	mv $(TOOLS)/golangci-lint $@

# Each parser of outside data, a while each.
FUZZTIME ?= 60s
fuzz:
	GO=$(GO) FUZZTIME=$(FUZZTIME) scripts/fuzz

# What many machines cost, beside the floor; figures go to build/bench.json.
bench: build
	@mkdir -p build && $(GO) build -o build/bench ./scripts/bench
	build/bench

bench-quick: build
	@mkdir -p build && $(GO) build -o build/bench ./scripts/bench
	build/bench -quick

schema:
	$(GO) test ./internal/config -run TestSchemaIsUpToDate -update

# The reference of commands (docs/cli), from the text of their --help.
docs:
	rm -rf docs/cli
	$(GO) run ./cmd/gpuctl docs --markdown docs/cli

# Two machines with two simulated GPUs each, and a cluster made of them.
demo: build
	scripts/demo up

demo-down:
	scripts/demo down

clean:
	rm -rf bin build
