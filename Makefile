# The face of the build. meson and ninja do the work; CONTRIBUTING.md says more.
BUILD := build
PREFIX ?= /usr/local
DESTDIR ?=

compile = { test -f $(BUILD)/build.ninja || meson setup $(BUILD); } && ninja -C $(BUILD)

all:
	@scripts/setup.sh --check build
	@$(compile)

# Everything that any target below needs.
setup:
	@scripts/setup.sh build test soak bench

demo:
	@scripts/setup.sh build
	@$(compile) --quiet
	@TACHO_BUILD=$(CURDIR)/$(BUILD) examples/demo.sh

test:
	@scripts/setup.sh build test
	@python3 tests/run.py

# The same tests with much longer fuzzing and many more kills, and real servers under load.
soak:
	@scripts/setup.sh build test soak
	@TACHO_SOAK=1 python3 tests/run.py

bench:
	@scripts/setup.sh build bench
	@$(compile) --quiet
	@TACHO_BUILD=$(CURDIR)/$(BUILD) python3 bench/run.py
	@TACHO_BUILD=$(CURDIR)/$(BUILD) python3 bench/daemons.py

install: all
	@meson configure $(BUILD) -Dprefix=$(PREFIX)
	@DESTDIR=$(DESTDIR) meson install -C $(BUILD) --quiet
	@if [ -z "$(DESTDIR)" ] && [ "$$(id -u)" = 0 ]; then ldconfig; fi
	@echo "tacho is installed in $(DESTDIR)$(PREFIX)"

# Brings all C files into the look that .clang-format describes.
format:
	@scripts/format.sh

clean:
	rm -rf build build-asan build-tsan build-fuzz build-arm64

.PHONY: all setup demo test soak bench install format clean
