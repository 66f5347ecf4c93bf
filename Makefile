# The two commands of the README. The work is done by `cargo xtask`.

# A toolchain installed a moment ago is not yet on the shell's path.
export PATH := $(PATH):$(HOME)/.cargo/bin

.PHONY: help serve test cargo

help:
	@echo "make serve    build, check the example documents, call a bundled tool"
	@echo "make test     everything CI runs: formatting, lints, docs, tidiness, tests"
	@echo
	@echo "cargo xtask   the single tasks behind them"

serve: cargo
	@cargo xtask setup
	@cargo xtask guest
	@cargo run --release --quiet --bin ringfence -- check examples/hello.json examples/weather.json
	@echo
	@target/release/ringfence run convertUnits --args '{"value": 26.2, "from": "mi", "to": "km"}'

test: cargo
	@cargo xtask ci

cargo:
	@command -v cargo >/dev/null || { echo "cargo is not installed: get Rust 1.95 or newer" >&2; exit 2; }
