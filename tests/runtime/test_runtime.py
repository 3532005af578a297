"""Programs without Python: built with the CMake package of the installed runtime, run on installed devices."""

import importlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

SEED = 20261125
HERE = Path(__file__).parent
PROJECT = """
cmake_minimum_required(VERSION 3.24)
project(programs LANGUAGES C CXX)
find_package(dovetail CONFIG REQUIRED HINTS "{cmake_dir}")
find_package(Threads REQUIRED)
set(CMAKE_C_STANDARD 11)
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_CXX_EXTENSIONS OFF)
add_compile_options(-pedantic -Wall -Wextra -Werror)
foreach(name first everything programs run_program)
  add_executable(${{name}} {here}/${{name}}.c)
  target_link_libraries(${{name}} PRIVATE dovetail::runtime)
endforeach()
add_executable(threads {here}/threads.cpp)
target_link_libraries(threads PRIVATE dovetail::runtime Threads::Threads)
"""


def run(*command: object, **options) -> subprocess.CompletedProcess:
    ended = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, timeout=300, check=False, **options
    )
    assert ended.returncode == 0, f"{command}\n{ended.stdout}\n{ended.stderr}"
    return ended


@pytest.fixture(scope="module")
def programs(tmp_path_factory) -> Path:
    cmake = shutil.which("cmake") or pytest.skip("cmake is not installed")
    folder = tmp_path_factory.mktemp("programs")
    cmake_dir = run(sys.executable, "-m", "dovetail", "--cmake-dir").stdout.strip()
    (folder / "CMakeLists.txt").write_text(PROJECT.format(cmake_dir=cmake_dir, here=HERE))
    run(cmake, "-S", folder, "-B", folder / "build")
    run(cmake, "--build", folder / "build")
    return folder / "build"


@pytest.fixture(scope="module", params=["cpu", "sim"])
def device(request) -> tuple[str, str]:
    """Its name and its library."""
    try:
        package = importlib.import_module(f"dovetail_{request.param}")
    except ImportError:
        pytest.skip(f"dovetail-{request.param} is not installed")
    return f"{request.param}:0", package.backend.library


def test_the_first_program(programs, device):
    ended = run(programs / "first", *device)
    assert ended.stdout == "1.5 2.5 3.5 4.5 5.5 6.5\n" and not ended.stderr


@pytest.mark.parametrize("name", ["everything", "programs", "threads"])
def test_every_function(programs, device, name):
    """Also that no Python is mapped into the process."""
    assert run(programs / name, *device).stdout == "ok\n"


def test_a_saved_program_gives_the_bits_that_python_got(programs, device, tmp_path):
    """At several sizes, in a process that has no Python in it."""
    import dovetail as dt
    from dovetail import _core

    rng = np.random.default_rng(SEED)
    builder = _core.ProgramBuilder()
    x = builder.input("float32", ["n", None, 24], "x")
    ids = builder.input("int64", ["n"], "ids")
    table = builder.array_constant(dt.asarray(rng.standard_normal((50, 24), np.float32), device=device[0]))
    weights = builder.array_constant(dt.asarray(rng.standard_normal((24, 31), np.float32), device=device[0]))
    rows = builder.call("take", [table, ids], {"axis": 0}, [])
    rows = builder.call("expand_dims", [rows], {"axis": (1,)}, [])
    product = builder.call("matmul", [builder.call("add", [x, rows], {}, []), weights], {}, [])
    outputs = [builder.call("softmax", [product], {}, []), builder.call("argmax", [product], {}, []), product]
    program = builder.finish(outputs)
    program.save(tmp_path / "m.dvt")
    for n, m in [(1, 5), (3, 1), (40, 7), (2, 128)]:
        inputs = [rng.standard_normal((n, m, 24), np.float32), rng.integers(0, 50, n)]
        expected = program.run(None, [dt.asarray(array, device=device[0]) for array in inputs])
        files = [tmp_path / f"{kind}{i}.npy" for kind, count in (("in", 2), ("out", 3)) for i in range(count)]
        for file, array in zip(files, inputs, strict=False):
            np.save(file, array)
        assert run(programs / "run_program", *device, tmp_path / "m.dvt", *files).stdout == "ok\n", SEED
        for file, array in zip(files[2:], expected, strict=True):
            got = np.load(file)
            assert got.dtype == np.asarray(array).dtype, (SEED, n, m)
            assert got.tobytes() == np.asarray(array).tobytes() and got.shape == array.shape, (SEED, n, m)


def test_a_folder_of_plugins(programs, device, tmp_path):
    """Those that cannot be opened are left out; other files are not tried."""
    name, library = device
    (tmp_path / Path(library).name).symlink_to(library)
    (tmp_path / "libdovetail_broken.so").write_text("no library")
    (tmp_path / "notes.txt").write_text("no plugin")
    assert run(programs / "first", name, tmp_path).stdout == "1.5 2.5 3.5 4.5 5.5 6.5\n"


def test_the_library_exports_the_api_and_private_names_alone():
    import dovetail

    nm = shutil.which("nm") or pytest.skip("nm is not installed")
    library = Path(dovetail.__file__).parent / "libdovetail.so"
    lines = run(nm, "-D", "--defined-only", library).stdout.splitlines()
    lines = [line for line in lines if line.split()[-2].isupper()]  # small letters: the library's alone
    names = {line.split()[-1] for line in lines} - {"DOVETAIL_1", "dovetail_private"}
    api = {name.partition("@@")[0] for name in names if name.endswith("@@DOVETAIL_1")}
    rest = {name for name in names if not name.endswith(("@@DOVETAIL_1", "@@dovetail_private"))}
    header = Path(dovetail.__file__).parent / "include/dovetail/runtime.h"
    if not header.is_file():
        header = HERE.parents[1] / "core/include/dovetail/runtime.h"
    declared = set(re.findall(r"^DVT_EXPORT [^(]*?\b(dvr_\w+)\(", header.read_text(), re.MULTILINE))
    assert api == declared
    assert rest in (set(), {"DOVETAIL_1", "dovetail_private"})


def test_python_and_c_share_the_generator():
    import ctypes

    import dovetail

    library = ctypes.CDLL(str(Path(dovetail.__file__).parent / "libdovetail.so"))
    library.dvr_default_generator.restype = ctypes.c_void_p
    own = dovetail.random.default_generator()
    before = own.state
    try:
        dovetail.random.seed(2026)
        key = (ctypes.c_uint32 * 4)()
        for words in (5, 3):
            assert not library.dvr_generator_key(
                ctypes.c_void_p(library.dvr_default_generator()), ctypes.c_uint64(words), key
            )
        assert (key[0], key[2]) == (2026, 2) and own.state == (2026, 3)
    finally:
        own.state = before
