# The everyday commands; CMake does the work. `make` alone lists them.

BUILD   ?= build
JOBS    ?= $(shell nproc)
PREFIX  ?= /usr/local
KILLS   ?= 1000
WERROR  ?=
MINUTES ?= 10
TESTS   ?= .
BUILD_SECONDS = 600#  of one processor, to compile the program
DEMO_SECONDS  = 180#  likewise, to train
SHELL   := /bin/bash

PACKAGES = g++ cmake ninja-build make pkg-config libopenblas-dev libtbb-dev nlohmann-json3-dev \
           doctest-dev libcli11-dev libfmt-dev libstb-dev zlib1g-dev nettle-dev libxxhash-dev libjpeg-dev \
           libarchive-dev libcurl4-openssl-dev libcpp-httplib-dev libbenchmark-dev libopenmpi-dev openmpi-bin \
           libfreetype-dev libfontconfig-dev libraqm-dev
LINTERS  = clang-format clang-tidy eslint
# ccache keeps what is compiled with a precompiled header only if it need not look into it.
SLOPPY   = env;CCACHE_SLOPPINESS=pch_defines,time_macros;ccache
LAUNCHER = $(if $(shell command -v ccache),"-DCMAKE_CXX_COMPILER_LAUNCHER=$(SLOPPY)")
CONFIGURE = cmake -G Ninja -S . $(WERROR:%=-DTESSERA_WERROR=%) $(LAUNCHER) $(CMAKE_ARGS)
EMULATED = build-emulated$(SANITIZE:%=-%)
EMULATED_TESTS = test_ops test_data test_optim test_core $(if $(SANITIZE),,test_training test_commands test_mpi)  # the last take hours there
# Sanitized builds have one kind of kernels, this machine's. What is not the engine compiles twice as fast with -O1.
SANITIZED = -DCMAKE_BUILD_TYPE=RelWithDebInfo "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1 -g1 -DNDEBUG" -DTESSERA_NATIVE=ON -DTESSERA_PCH=OFF
CTEST    = ctest --output-on-failure -j $(JOBS)
FILES    = $$(git ls-files -co --exclude-standard '*.h' '*.cpp' '*.cu')
SOURCES  = $$(git ls-files -co --exclude-standard 'engine/*.cpp' 'models/*.cpp' 'data/*.cpp' 'apps/*.cpp' | grep -v ^engine/cuda/)

.PHONY: help deps configure build program test demo demo-pictures bench bench-peer format lint asan tsan coverage docs \
        torture soak fuzz fuzz-corpus compare-pictures hardening sbom emulate arm64 gpu-check gpu-bundle package install \
        clean
.DEFAULT_GOAL := help

help: ## list these commands
	@grep -E '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## /make \1\t/' | expand -t 18

deps: ## install what is missing of the Debian packages that the build needs
	@.ci/deps $(PACKAGES)

configure: deps
	@$(CONFIGURE) -B $(BUILD)

build: configure ## build everything; the program is build/tessera
	cmake --build $(BUILD) -j $(JOBS)

test: build ## run all tests
	@cd $(BUILD) && $(CTEST); status=$$?; $(CURDIR)/.ci/skips Testing/Temporary/LastTest.log; exit $$status

program: configure
	cmake --build $(BUILD) -j $(JOBS) --target tessera

# $(call demo,NAME,what it trains on,recipe,arguments): builds the program, trains, and shows one pass.
define demo
	@if [ -x $(BUILD)/tessera ]; then echo "Brings $(BUILD)/tessera up to date,"; \
	else echo "Builds $(BUILD)/tessera, about $$(( ($(BUILD_SECONDS) / $(JOBS) + 59) / 60 )) minutes on $(JOBS) processors,"; \
	fi | sed "s/$$/ then trains a small SL-ViT on $(2), about $$(($(DEMO_SECONDS) / $(JOBS))) seconds./"
	@$(MAKE) --no-print-directory program
	@set -e; run=runs/$(1)-$$(date +%Y%m%d-%H%M%S); \
	$(BUILD)/tessera train --recipe $(3) $(4) --out $$run; \
	$(BUILD)/tessera inspect $$run $(4) --out $$run/inspect.html; \
	echo "Every gradient of one picture: open $$run/inspect.html in a browser. The first lesson: $(BUILD)/tessera inspect --lesson"
endef

demo: ## build the program alone, train SL-ViT on built-in shapes and show its gradients, some minutes on two cores
	$(call demo,demo,built-in shapes,demo)

demo-pictures: ## the same with real pictures: tiles of the eight photographs of data/closeups
	$(call demo,demo-pictures,tiles of eight photographs,closeups,--data data/closeups)

bench: build ## measure kernels and a training step against this machine's GEMM peak
	@if [ -x $(BUILD)/tessera_bench ]; then $(BUILD)/tessera_bench; fi
	$(BUILD)/tessera bench train --model sl-vit --image-size 32 --classes 10 --batch 128

bench-peer: build ## a step beside the same one in PyTorch, if python3 has torch (ARGS=--table: every family; --infer)
	@if python3 -c 'import torch' 2>/dev/null; then apps/benchmarks/pytorch_peer.py --tessera $(BUILD)/tessera $(ARGS); \
	else echo "bench-peer: skipped: python3 here has no torch"; fi

format: ## rewrite the sources in the project's format
	@.ci/deps clang-format
	clang-format -i $(FILES)

lint: deps ## check the format, run clang-tidy and eslint
	@.ci/deps $(LINTERS)
	@$(CONFIGURE) -B build-lint -DTESSERA_PCH=OFF -DTESSERA_TESTS=OFF  # clang reads neither g++'s headers nor the emulator
	cmake --build build-lint --target build_facts
	sed -i 's/ -fno-gnu-unique//' build-lint/compile_commands.json  # clang does not know it
	clang-format --dry-run -Werror $(FILES)
	echo $(SOURCES) | xargs -P $(JOBS) -n 4 clang-tidy --quiet -p build-lint
	NODE_PATH=/usr/share/nodejs eslint --format unix --ext .js,.mjs apps/inspector/page tests/inspector apps/docs

asan: deps ## run the tests under the address and undefined-behaviour sanitizers
	@$(CONFIGURE) -B build-asan $(SANITIZED) -DTESSERA_SANITIZE=address,undefined
	cmake --build build-asan -j $(JOBS)
	cd build-asan && $(CTEST)

tsan: deps ## run the tests under the thread sanitizer
	@$(CONFIGURE) -B build-tsan $(SANITIZED) -DTESSERA_SANITIZE=thread
	cmake --build build-tsan -j $(JOBS)
	cd build-tsan && $(CTEST)

coverage: deps ## run the tests (TESTS=REGEX) and report the lines and branches they reach, in build-coverage/html
	@.ci/deps clang llvm
	@.ci/coverage $(JOBS) '$(TESTS)'

docs: program ## build the documentation, guide and API, with a search that needs no network: build-docs/site/index.html
	@.ci/deps doxygen graphviz cmark-gfm python3 cmake
	@.ci/docs $(BUILD)/tessera

torture: build ## kill a run a thousand times at random moments (KILLS), some minutes
	TESSERA_KILLS=$(KILLS) $(BUILD)/tests/test_torture --test-case='*killed*'

soak: program ## train for an hour (MINUTES=60): memory stays within a hundredth, descriptors stay
	@.ci/soak $(BUILD)/tessera $(if $(filter command line,$(origin MINUTES)),$(MINUTES),60)

mutants: build ## plant small faults one by one and count those that a test notices; about an hour
	tests/mutation/mutate.py --build $(BUILD)

hardening: deps ## build the program as a release, and let Debian's hardening-check look for its defences
	@.ci/deps devscripts
	@$(CONFIGURE) -B build-hardened -DTESSERA_HARDEN=ON -DTESSERA_TESTS=OFF -DTESSERA_BENCH=OFF
	cmake --build build-hardened -j $(JOBS) --target tessera
	hardening-check --color=never build-hardened/tessera

sbom: program ## list what the program is made of and linked with (CycloneDX), in build/sbom.json
	@.ci/sbom $(BUILD)/tessera > $(BUILD)/sbom.json && echo "$(BUILD)/sbom.json"

fuzz: deps ## run the fuzzers of the file readers, MINUTES=10 each
	@.ci/deps clang
	$(CONFIGURE) -B build-fuzz -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_BUILD_TYPE=RelWithDebInfo \
	  -DTESSERA_TESTS=OFF -DTESSERA_BENCH=OFF -DTESSERA_FUZZ=ON -DTESSERA_NATIVE=ON \
	  -DTESSERA_SANITIZE=fuzzer-no-link,address,undefined
	cmake --build build-fuzz -j $(JOBS) --target fuzzers
	@.ci/fuzz build-fuzz $(MINUTES)

fuzz-corpus: ## add what the fuzzers found to the inputs that make test replays, as far as it reaches new branches
	@.ci/fuzz-corpus build-fuzz

compare-pictures: configure ## decode pictures, whole and damaged, beside Pillow, where python3 has it (PICTURES=2000)
	cmake --build $(BUILD) -j $(JOBS) --target decode_pictures
	tests/fuzz/pillow/compare_with_pillow.py --decoder $(BUILD)/tests/decode_pictures --pictures $(or $(PICTURES),2000)

emulate: deps ## test the CUDA kernels on this processor, without a GPU (SANITIZE=thread: races, address: overruns)
	@$(CONFIGURE) -B $(EMULATED) -DTESSERA_CUDA=EMULATED -DTESSERA_BENCH=OFF \
	  $(if $(SANITIZE),$(SANITIZED) -DTESSERA_SANITIZE=$(SANITIZE),-DTESSERA_NATIVE=ON)
	cmake --build $(EMULATED) -j $(JOBS) --target tessera $(EMULATED_TESTS)
	@export TSAN_OPTIONS=suppressions=$(CURDIR)/tests/house/tsan.supp ASAN_OPTIONS=detect_leaks=0; status=0; \
	for test in $(EMULATED_TESTS); do \
	  echo "== $$test"; taskset -c 0 $(EMULATED)/tests/$$test --test-case='*cuda*' || status=1; \
	done; \
	for dtype in f32 f64; do \
	  echo "== fixtures, $$dtype"; \
	  taskset -c 0 $(EMULATED)/tessera parity --device cuda --dtype $$dtype tests/fixtures/*.safetensors || status=1; \
	done; exit $$status

arm64: deps ## build for ARM64 with Debian's cross compiler, and run the tests of the operations in qemu
	@.ci/arm64 $(JOBS)

gpu-check: deps ## run the tests of the CUDA backend, where there is one and a GPU (ARGS=--quick)
	@.ci/gpu-check $(ARGS) $(JOBS)

gpu-bundle: deps ## pack program and tests for a GPU machine without packages or a network
	@.ci/gpu-bundle $(JOBS)

package: deps ## build the Debian packages, build-package/*.deb, check them with lintian and try them in a folder
	@.ci/deps dpkg-dev file lintian fakeroot
	@.ci/package $(JOBS)

install: build ## install program, libraries and package below PREFIX (/usr/local)
	cmake --install $(BUILD) --prefix $(PREFIX)

clean: ## remove what these commands built
	rm -rf $(BUILD) build-asan build-tsan build-lint build-coverage build-docs build-fuzz build-hardened build-package build-cuda build-gpu build-emulated* build-arm64
