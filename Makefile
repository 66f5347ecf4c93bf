# The two commands of the README. The work is done by `cargo xtask`.

# A toolchain installed a moment ago is not yet on the shell's path.
export PATH := $(PATH):$(HOME)/.cargo/bin

.PHONY: help serve test cargo

help:
	@echo "make serve    build, then serve the bundled tools to MCP clients; prints where"
	@echo "make test     everything CI runs: formatting, lints, docs, tidiness, tests"
	@echo
	@echo "cargo xtask   the single tasks behind them"

serve: cargo
	@cargo xtask setup
	@cargo xtask guest
	@cargo build --release --quiet --bin ringfence
	@exec target/release/ringfence serve

test: cargo
	@cargo xtask ci

cargo:
	@command -v cargo >/dev/null || { echo "cargo is not installed: get Rust 1.95 or newer" >&2; exit 2; }
