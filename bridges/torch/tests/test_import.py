"""`import torch` works whatever is missing, with one warning that names the cause."""

import os
import subprocess
import sys

import pytest

CODE = """
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    {before}
    import torch
    import dovetail_torch
    dovetail_torch._autoload()
print([str(w.message) for w in caught if "dovetail" in str(w.message)])
print(torch.ones(2).tolist())
{after}
"""


def run(before="", after="", **environment):
    done = subprocess.run(
        [sys.executable, "-c", CODE.format(before=before, after=after)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    warned, ones, *rest = done.stdout.splitlines()
    assert ones == "[1.0, 1.0]"
    return warned, rest


def test_the_devices_are_there():
    warned, rest = run(after="print(torch.ones(2, device='dovetail:1').device)")
    assert warned == "[]" and rest == ["dovetail:1"]


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"DOVETAIL_BACKEND_AUTOLOAD": "0", "DOVETAIL_TORCH_DEVICES": ""}, "Dovetail has no device"),
        ({"DOVETAIL_TORCH_DEVICES": "acme:0"}, "'acme:0': expected some of"),
        ({"DOVETAIL_TORCH_DEVICES": "cpu:0,,sim:0"}, "DOVETAIL_TORCH_DEVICES has an empty name"),
        ({"DOVETAIL_TORCH_DEVICES": "sim:0,cpu:0, sim"}, "DOVETAIL_TORCH_DEVICES has 'sim:0' twice"),
        (
            {"DOVETAIL_TORCH_FALLBACK": "eror"},
            "FALLBACK: got 'eror', expected one of allow, warn, error",
        ),
    ],
)
def test_one_warning(environment, words):
    warned, (devices,) = run(
        **environment, after="print(dovetail_torch.devices(), torch.accelerator.is_available())"
    )
    assert words in warned and warned.count("there is no device 'dovetail'") == 1
    assert devices == "[] False"


def test_names_of_devices_may_have_spaces():
    warned, rest = run(after="print(dovetail_torch.devices())", DOVETAIL_TORCH_DEVICES="cpu , sim:0 ")
    assert warned == "[]" and rest == ["['cpu:0', 'sim:0']"]


def test_another_version_of_torch():
    warned, _ = run(
        before="import torch; torch.__version__ = '2.99.0'; import dovetail_torch; dovetail_torch._loaded = False",
        DOVETAIL_TORCH="1",
        TORCH_DEVICE_BACKEND_AUTOLOAD="0",
    )
    assert "no library for torch 2.99.0" in warned and "pip install --upgrade dovetail-torch" in warned


def test_another_device_has_the_place():
    warned, _ = run(
        before="import torch; torch.utils.rename_privateuse1_backend('acme')", TORCH_DEVICE_BACKEND_AUTOLOAD="0"
    )
    assert "'acme' took it" in warned


def test_switched_off():
    warned, rest = run(after="print(dovetail_torch.error)", DOVETAIL_TORCH="0")
    assert warned == "[]" and rest == ["None"]


def test_a_forked_process_ends_without_an_error():
    code = """
import os, sys, torch, dovetail_torch
dovetail_torch._autoload()
(torch.ones(2, device="dovetail:1") + 1).cpu()
pid = os.fork()
if not pid:
    sys.exit(3)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 3 and "Traceback" not in done.stderr, done.stderr
