"""The operating system's part of the core: test_platform.cpp, in Wine."""


def test_services_of_the_operating_system(wine, built):
    ended = wine.run(built.programs / "test_platform.exe")
    assert ended.returncode == 0, f"{ended.stdout}\n{ended.stderr}"
    assert " checks, 0 failed" in ended.stdout
