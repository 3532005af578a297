"""The linker of images, with objects of LLVM and of the C compiler, run here and in an emulator of aarch64."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from dovetail_llvm.image import LinkError, link
from dovetail_llvm.protocol import Refusal
from dovetail_llvm.worker import build
from toolchain_service import request

HERE = Path(__file__).parent
TARGETS = {"x86_64-linux-gnu": "+avx2,+fma", "aarch64-linux-gnu": ""}

# Constants of several sizes, a call within the module, a jump table, and a call through an argument.
KERNELS = r"""
define internal fastcc i64 @choose(i64 %k) noinline {
  switch i64 %k, label %other [
    i64 0, label %a i64 1, label %b i64 2, label %c i64 3, label %d i64 4, label %e
  ]
a: ret i64 11
b: ret i64 7
c: ret i64 1300
d: ret i64 5
e: ret i64 -3
other: ret i64 0
}
define i64 @pick(i64 %k) {
  %v = call fastcc i64 @choose(i64 %k)
  %w = add i64 %v, 1
  ret i64 %w
}
define void @scale(ptr %x, ptr %y, i64 %n, ptr %callback) {
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%j, %loop]
  %p = getelementptr float, ptr %x, i64 %i
  %v = load <8 x float>, ptr %p, align 4
  %a = fmul <8 x float> %v, <float 1.5, float 2.5, float 3.5, float 4.5, float 5.5, float 6.5, float 7.5, float 8.5>
  %b = fadd <8 x float> %a, splat (float 0x3FB99999A0000000)
  %q = getelementptr float, ptr %y, i64 %i
  store <8 x float> %b, ptr %q, align 4
  %j = add i64 %i, 8
  %c = icmp ult i64 %j, %n
  br i1 %c, label %loop, label %done
done:
  call void %callback(i64 %n)
  ret void
}
@table = private constant [4 x i8] c"abcd"
define i64 @letter(i64 %i) {
  %p = getelementptr i8, ptr @table, i64 %i
  %c = load i8, ptr %p
  %w = zext i8 %c to i64
  ret i64 %w
}
"""
FUNCTIONS = ["scale", "pick", "letter"]


def image(target: str, text: str = KERNELS, functions: list[str] = FUNCTIONS) -> bytes:
    return build(request(text, functions, target, TARGETS[target]))


@pytest.mark.parametrize("target", TARGETS)
def test_the_header(target):
    made = image(target)
    magic, version, machine, page, count, named, code, size = struct.unpack_from("<8sIIIIIIQ", made)
    assert (magic, version, page, count) == (b"DVTCODE\0", 1, 4096, 3)
    assert machine == {"x86_64": 62, "aarch64": 183}[target.partition("-")[0]]
    entries = struct.unpack_from("<3Q", made, 72)
    assert made[96 : 96 + named].decode() == TARGETS[target]
    assert code % 64 == 0 and size == len(made) and all(code <= entry < size for entry in entries)
    assert len(set(entries)) == 3
    assert made == image(target)  # the same request gives the same bytes


def compiled(compiler: str, output: Path) -> list[str]:
    subprocess.run([compiler, "-O1", "-static", str(HERE / "run_image.c"), "-o", str(output)], check=True)
    return [str(output)]


@pytest.fixture(scope="module", params=TARGETS)
def machine(request, tmp_path_factory):
    """A target, and the command that runs the functions of its image."""
    folder = tmp_path_factory.mktemp("run")
    if request.param.startswith("x86_64"):
        if subprocess.run(["uname", "-m"], capture_output=True, text=True).stdout.strip() != "x86_64":
            pytest.skip("this machine is no x86-64")
        return request.param, compiled("cc", folder / "run")
    emulator, compiler = shutil.which("qemu-aarch64"), shutil.which("aarch64-linux-gnu-gcc")
    if not emulator or not compiler:
        pytest.skip("there is no qemu-aarch64 or no aarch64-linux-gnu-gcc")
    return request.param, [emulator, *compiled(compiler, folder / "run")]


def test_it_runs(machine, tmp_path):
    target, command = machine
    (tmp_path / "image").write_bytes(image(target))
    done = subprocess.run([*command, str(tmp_path / "image")], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == "called back with 16\n12 8 1301 6 -2 1\nabcd\n"


EXPF8 = "declare void @expf8(ptr)\ndefine void @f(ptr %p) { call void @expf8(ptr %p) ret void }"
SINE = """declare double @llvm.sin.f64(double)
define double @f(double %x) {
  %y = call double @llvm.sin.f64(double %x)
  ret double %y
}"""


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("text", "why"),
    [
        (EXPF8, "undefined symbol 'expf8'"),
        (SINE, "undefined symbol 'sin'"),
        ("@g = global i32 7\ndefine ptr @f() { ret ptr @g }", "data that can be written, in .data"),
        ("@g = global i32 0\ndefine ptr @f() { ret ptr @g }", "data that can be written, in .bss"),
        ("@g = thread_local global i32 7\ndefine void @f() { ret void }", "data that can be written, in .tdata"),
        ("define void @other() { ret void }", "no function 'f'"),
        ("@f = constant i32 7", "'f' is no function"),
        ("declare void @f()", "no function 'f'"),
        ("define void @f(", "expected"),
        ("define i32 @f() { ret i64 1 }", "i64"),
    ],
)
def test_what_an_image_cannot_have(target, text, why):
    with pytest.raises(Refusal, match=why.replace(".", "[.]")):
        image(target, text, ["f"])


@pytest.mark.parametrize(
    ("head", "why"),
    [
        (b"", "JSONDecodeError"),
        (b"[]", "TypeError"),
        (b"{}", "KeyError"),
        (b'{"target": 1, "features": "", "functions": []}', "target and features are texts"),
        (b'{"target": "x86_64-linux-gnu", "features": "", "functions": [1]}', "list of names"),
        (b'{"target": "z80-linux-gnu", "features": "", "functions": []}', "z80"),
        (b"\xff", "Error"),
    ],
)
def test_malformed_requests(head, why):
    with pytest.raises(Refusal, match=why):
        build(head + b"\ndefine void @f() { ret void }")


def test_an_object_that_is_none():
    for data in (b"", b"\x7fELF\x01\x01" + bytes(100), b"MZ" + bytes(200)):
        with pytest.raises(LinkError, match="no ELF"):
            link(data, ["f"], "")
