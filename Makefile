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
	@scripts/setup.sh build page test soak bench

# A folder may have been configured before the page's tools were there.
with_page = { $(BUILD)/src/cli/tacho view --html - >/dev/null 2>&1 || \
	{ meson setup --reconfigure -Dpage=enabled $(BUILD) && $(1); }; }
compile_demo = $(compile) demo-programs && $(call with_page,$(compile) demo-programs)

# What the build says is of interest when it fails.
demo:
	@scripts/setup.sh build page
	@echo "Building tacho into $(BUILD)/ ..."
	@log=$$(mktemp) && { { $(compile_demo); } >$$log 2>&1 || \
		{ cat $$log; rm -f $$log; exit 1; }; } && rm -f $$log
	@TACHO_BUILD=$(CURDIR)/$(BUILD) examples/guess.sh

test:
	@scripts/setup.sh build page test
	@python3 tests/run.py

# The same tests with much longer fuzzing and many more kills, and real servers under load.
soak:
	@scripts/setup.sh build page test soak
	@TACHO_SOAK=1 python3 tests/run.py

# Which test notices which bug (scripts/mutate.py); hours. MUTATE: its options.
mutate:
	@scripts/setup.sh build page test
	@python3 scripts/mutate.py $(MUTATE)

bench:
	@scripts/setup.sh build page bench
	@$(compile) --quiet && $(call with_page,$(compile) --quiet)
	@TACHO_BUILD=$(CURDIR)/$(BUILD) python3 bench/run.py
	@TACHO_BUILD=$(CURDIR)/$(BUILD) python3 bench/daemons.py
	@TACHO_BUILD=$(CURDIR)/$(BUILD) python3 bench/page.py

# tacho beside dial9 and Go; needs cargo, go and node, and fetches dial9 from its registry.
bench-beside:
	@scripts/setup.sh build bench
	@$(compile) --quiet
	@TACHO_BUILD=$(CURDIR)/$(BUILD) python3 bench/beside.py

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

.PHONY: all setup demo test soak mutate bench bench-beside install format clean
