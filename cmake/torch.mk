# Included by the Makefile: dovetail-torch for several versions of torch, each of which is gigabytes.

# Those that the wheel has libraries for. The first is the one of test-torch.
TORCH_MINORS := 2.13 2.14 2.15
other_minors := $(wordlist 2,9,$(TORCH_MINORS))
torch_sources := $(shell find bridges/torch/src bridges/torch/cmake core/include -type f) bridges/torch/CMakeLists.txt

# The library alone needs torch's headers and libraries, and none of what torch depends on.
build/torch/%/.built: $(torch_sources) | $(TORCH)/.tools
	@echo "-- the library of dovetail-torch for torch $*"
	@test -d $(@D)/torch/torch || $(call pip,$(TORCH)) install --no-deps --target $(@D)/torch "torch==$*.*"
	@{ export PATH="$(abspath $(TORCH)/bin):$$PATH" PYTHONPATH=$(abspath $(@D)/torch) \
	  && cmake -S bridges/torch -B $(@D)/cmake -DPython_EXECUTABLE=$(abspath $(TORCH)/bin/python) \
	  && cmake --build $(@D)/cmake; } > $@.log 2>&1 || { tail -n 200 $@.log; exit 1; }
	@touch $@

# One wheel for all of them, into dist/release.
wheel-torch: $(foreach m,$(other_minors),build/torch/$m/.built)
	@echo "-- wheel of bridges/torch for torch $(TORCH_MINORS)"
	@mkdir -p dist/release
	@rm -f dist/release/dovetail_torch-*.whl
	@$(call unstage,bridges/torch,$(TORCH))
	@DOVETAIL_TORCH_PREBUILT="$(subst $(space),;,$(foreach m,$(other_minors),$(abspath build/torch/$m/cmake/lib)))" \
	  $(call pip,$(TORCH)) wheel --no-deps --no-build-isolation --wheel-dir dist/release ./bridges/torch
	@ls -1 dist/release/dovetail_torch-*.whl

# An environment for each other version, and there the tests of test-torch. torchvision's models are Python, which any torch runs.
.SECONDARY: $(foreach m,$(other_minors),$(TORCH)-of-$m/.tools $(TORCH)-of-$m/bin/python)
$(TORCH)-of-%/bin/python:
	@echo "-- $(@D:/bin=) with $(PYTHON)"
	@sh cmake/venv.sh "$(PYTHON)" $(@D:/bin=)
$(TORCH)-of-%/.tools: pyproject.toml bridges/torch/pyproject.toml | $(TORCH)/.tools $(TORCH)-of-%/bin/python
	@echo "-- torch $* into $(@D)"
	@sed -e 's/^torch==.*/torch==$*.*/' -e 's/^torchvision.*/pillow/' $(TORCH)/.tools.txt > $@.txt
	@$(call pip,$(@D)) install -r $@.txt
	@$(call pip,$(@D)) install --no-deps "$$(grep '^torchvision' $(TORCH)/.tools.txt)"
	@touch $@

test-torch-%: wheel-torch $(stamps_of_$(VENV)) $(TORCH)-of-%/.tools
	@echo "-- tests of dovetail-torch with torch $*"
	@$(call pip,$(TORCH)-of-$*) install --force-reinstall --no-deps $(our_wheels) dist/release/dovetail_torch-*.whl
	@$(TORCH)-of-$*/bin/python -m pytest -n $(JOBS) --dist worksteal $(SELECT) bridges/torch/tests

# On a GPU's device, whose libraries the environment of its own tests has: SYCL's CPU device, and the emulated driver.
test-torch-xpu: $(XPU)/.installed $(TORCH)/.installed
test-torch-cuda: $(CUDA)/.installed $(TORCH)/.installed build/cuda-emulator/.built
test-torch-xpu: on := PYTHONPATH="$$(echo $(abspath $(XPU))/lib/python*/site-packages)" DOVETAIL_XPU_ALLOW_CPU=1
test-torch-cuda: on := PYTHONPATH="$$(echo $(abspath $(CUDA))/lib/python*/site-packages)" DOVETAIL_CUDA_UNVERIFIED=1 \
  DOVETAIL_CUDA_DRIVER=$(abspath build/cuda-emulator/libcuda_emulator.so)
test-torch-xpu test-torch-cuda: test-torch-%:
	@echo "-- tests of dovetail-torch on $*:0"
	@$(on) DOVETAIL_TORCH_TEST_DEVICE=$*:0 $(TORCH)/bin/python -m pytest -n $(JOBS) --dist worksteal $(SELECT) bridges/torch/tests

# Every sample and more dtypes with the version of test-torch, then the quick tests with the others.
test-torch-all: $(TORCH)/.installed
	@echo "-- tests of dovetail-torch, the slow ones as well"
	@$(TORCH)/bin/python -m pytest -n $(JOBS) --dist worksteal bridges/torch/tests
	@for minor in $(other_minors); do $(MAKE) test-torch-$$minor || exit 1; done
