"""docs/deployed_sizes.py: the table of what is deployed, from wheels."""

import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "docs"))
import deployed_sizes  # noqa: E402


def wheel(folder: Path, name: str, **files: int) -> None:
    with zipfile.ZipFile(folder / name, "w") as archive:
        for path, size in files.items():
            archive.writestr(path, bytes(size))


@pytest.fixture
def folder(tmp_path):
    for architecture in deployed_sizes.ARCHITECTURES:
        wheel(tmp_path, f"dovetail_runtime-1-cp311-cp311-manylinux_2_28_{architecture}.whl",
              **{"dovetail/libdovetail.so": 2_340_000, "dovetail/dovetail-probe": 150_000})  # fmt: skip
    wheel(tmp_path, "dovetail_cpu-1-py3-none-manylinux_2_28_x86_64.whl",
          **{"dovetail_cpu/lib/libdovetail_cpu.so": 1_500_000, "dovetail_cpu/lib/libdovetail_dnnl.so.3": 3_000_000,
             "other/libdovetail_cpu.so": 9_000_000})  # fmt: skip
    return tmp_path


def test_files_of_wheels_are_measured(folder):
    sizes = deployed_sizes.measured(folder)
    assert sizes["x86_64"]["dovetail_cpu/lib/libdovetail_dnnl.so"] == 3_000_000
    assert sizes["aarch64"] == {"dovetail/libdovetail.so": 2_340_000, "dovetail/dovetail-probe": 150_000}
    lines = deployed_sizes.table(sizes).splitlines()
    assert lines[2].startswith("| `libdovetail.so` | 2.3 | 2.3 | ")
    assert lines[3].startswith("| `dovetail-probe` | 0.15 | 0.15 | ")
    assert lines[4].startswith("| `libdovetail_cpu.so` | 1.5 | - | ")


def test_a_table_replaces_the_one_before(folder):
    text = f"above\n{deployed_sizes.BEGIN}{deployed_sizes.END}below\n"
    lines = deployed_sizes.table(deployed_sizes.measured(folder))
    once = deployed_sizes.with_table(text, lines)
    assert once == deployed_sizes.with_table(once, lines) == text.replace("begin -->\n", "begin -->\n" + lines)


def test_wheels_that_are_missing_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="has no wheels for x86_64; run make wheels"):
        deployed_sizes.measured(tmp_path)


@pytest.mark.release
def test_the_guide_has_the_sizes_of_the_wheels():
    """Within a tenth: a change of a few lines need not change the guide."""
    text = deployed_sizes.PAGE.read_text("utf-8")
    rows = text[text.index(deployed_sizes.BEGIN) : text.index(deployed_sizes.END)].splitlines()
    measured = deployed_sizes.measured(ROOT / "dist/release")
    for column, architecture in enumerate(deployed_sizes.ARCHITECTURES, start=1):
        for name, size in measured[architecture].items():
            row = next(line for line in rows if line.startswith(f"| `{name.rpartition('/')[2]}` | "))
            written = float(row.split(" | ")[column])
            assert abs(written * 1e6 - size) <= max(size / 10, 1e4), (architecture, name, written, size)
