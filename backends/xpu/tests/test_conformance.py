"""The suite on SYCL's CPU device: the device must reach its level without a waiver."""


def test_level_two(conform):
    results = conform("--level", "L2")
    wrong = [c["id"] for c in results["cases"] if c["status"] not in ("pass", "unsupported")]
    assert (results["exit"], results["level"]["reached"], wrong) == (0, "L2", []), results["printed"]
    assert not results["level"].get("waived")
