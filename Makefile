# The two commands of the README. The work is done by `cargo xtask`.

# A toolchain installed a moment ago is not yet on the shell's path.
export PATH := $(PATH):$(HOME)/.cargo/bin

.PHONY: help serve test cargo

help:
	@echo "make serve    build, then serve the bundled tools to MCP clients; prints where"
	@echo "make test     everything CI runs: formatting, lints, docs, tidiness, tests"
	@echo
	@echo "cargo xtask   the single tasks behind them"

# The task runner is built like the program, so that both share their dependencies.
serve: cargo
	@echo "== 0 of 5: the task runner of this project"
	@cargo build --locked --profile serve --package xtask --no-default-features
	@exec target/serve/xtask serve

# Built as a part of the workspace, the task runner shares its dependencies with the tests:
# alone it would build 74 units that they do not use.
test: cargo
	@echo "== 0 of 13: the task runner of this project"
	@cargo build --locked --workspace --bin xtask
	@exec target/debug/xtask ci

cargo:
	@command -v cargo >/dev/null || { echo "cargo is not installed: get Rust 1.95 or newer" >&2; exit 2; }
