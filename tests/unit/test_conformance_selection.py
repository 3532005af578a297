import pytest
from dovetail_conformance.running.selection import BadExpression, selects

IDS = (
    "add[f32,vectors]",
    "logaddexp[f32,vectors]",
    "add[i32,values,layout=T]",
    "device.memory[odd_sizes]",
    "matmul[f32,m=3,k=5,n=7]",
)
GROUPS = {"add", "logaddexp", "matmul", "device.memory"}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("add", "02"),
        ("ADD", "02"),
        ("dd", "0123"),
        ("logadd", "1"),
        ("add or matmul", "024"),
        ("add and f32", "0"),
        ("not add", "134"),
        ("f32 and not (add or matmul)", "1"),
        ("not f32 and not i32", "3"),
        ("device.memory", "3"),
        ("device", "3"),
        ("*[f32,*", "014"),
        ("add[?32,*", "02"),
        ("matmul[f32,m=3,k=5,n=7]", "4"),
        ("layout=T", "2"),
        ("nothing", ""),
    ],
)
def test_selects(expression, expected):
    chosen = selects(expression, GROUPS)
    assert "".join(str(i) for i, id in enumerate(IDS) if chosen(id)) == expected


@pytest.mark.parametrize(
    "expression", ["", "and", "add and", "add or or mul", "(add", "add)", "not", "add mul", "()"]
)
def test_refuses(expression):
    with pytest.raises(BadExpression, match="-k"):
        selects(expression)
