import pytest


@pytest.fixture(params=["cpu:0", "sim:0"])
def home(request):
    """The name of a device."""
    return request.param
