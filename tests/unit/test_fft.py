"""dovetail.fft and the eigenvalues of any matrices beside NumPy's."""

import dovetail as dt
import numpy as np
import pytest

SIZES = (1, 2, 3, 8, 31, 64, 65, 67, 100, 127, 257, 263, 509, 1009, 4096, 5040)  # powers, mixtures, primes


def draw(*shape: int) -> np.ndarray:
    rng = np.random.default_rng(11)  # of each call: tests run in any order
    return rng.normal(size=shape) + 1j * rng.normal(size=shape)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("n", SIZES)
def test_transforms_of_any_size_are_near_to_numpys(n, dtype, home):
    z = draw(2, n).astype(dtype)
    most = 8 * np.finfo(dtype).eps
    for name in ("fft", "ifft"):
        got = getattr(dt.fft, name)(dt.asarray(z))
        wanted = getattr(np.fft, name)(z.astype("complex128"))
        assert got.dtype == dtype
        assert np.linalg.norm(got.numpy() - wanted) <= most * np.linalg.norm(wanted)


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_transforms_of_one_axis(name, norm, home):
    a = draw(3, 4, 6)
    a = a.real.copy() if name in ("rfft", "ihfft") else a
    for n in (None, 1, 5, 8):
        for axis in (-1, 0, 1):
            got = getattr(dt.fft, name)(dt.asarray(a), n=n, axis=axis, norm=norm)
            wanted = getattr(np.fft, name)(a, n=n, axis=axis, norm=norm)
            np.testing.assert_allclose(got.numpy(), wanted, atol=1e-12, err_msg=f"n={n}, axis={axis}")


@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn"])
def test_transforms_of_several_axes(name, home):
    a = draw(3, 4, 6)
    a = a.real.copy() if name == "rfftn" else a
    for s, axes in ((None, None), (None, (0, 1)), ((5, 4), (0, 2)), (None, (2, 0)), ((3, 4, 5), (0, 1, 2))):
        got = getattr(dt.fft, name)(dt.asarray(a), s=s, axes=axes)
        wanted = getattr(np.fft, name)(a, s=s, axes=axes)
        np.testing.assert_allclose(got.numpy(), wanted, atol=1e-12, err_msg=f"s={s}, axes={axes}")


def test_frequencies_and_shifts(home):
    x = np.arange(60.0).reshape(3, 4, 5)
    for n in (1, 4, 5):
        np.testing.assert_allclose(dt.fft.fftfreq(n, d=0.5, dtype="float64").numpy(), np.fft.fftfreq(n, 0.5))
        np.testing.assert_allclose(dt.fft.rfftfreq(n, d=0.5).numpy(), np.fft.rfftfreq(n, 0.5))
    for axes in (None, 1, (0, 2)):
        shifted = dt.fft.fftshift(dt.asarray(x), axes=axes)
        np.testing.assert_array_equal(shifted.numpy(), np.fft.fftshift(x, axes=axes))
        np.testing.assert_array_equal(dt.fft.ifftshift(shifted, axes=axes).numpy(), x)


def test_a_compiled_convolution(home):
    def convolved(x, y):
        return dt.fft.irfft(dt.fft.rfft(x) * dt.fft.rfft(y), n=x.shape[-1])

    x, y = draw(2, 3, 30).real
    wanted = np.fft.irfft(np.fft.rfft(x) * np.fft.rfft(y), n=30)
    args = (dt.asarray(x), dt.asarray(y))
    for function in (dt.compile(convolved), dt.export(convolved, *args)):
        np.testing.assert_allclose(function(*args).numpy(), wanted, atol=1e-12)


def test_a_device_that_was_reset_transforms_again():
    z = draw(100)
    for _ in range(2):
        np.testing.assert_allclose(dt.fft.fft(dt.asarray(z, device="sim:1")).numpy(), np.fft.fft(z), atol=1e-12)
        dt.device("sim:1").reset()


def test_bad_arguments_name_the_cure():
    z = dt.asarray([1j, 2.0])
    with pytest.raises(ValueError, match=r"\[fft\] n: got 0 .*at least 1"):
        dt.fft.fft(z, n=0)
    with pytest.raises(ValueError, match=r"\[ifft\] norm: got 'none', expected 'backward'"):
        dt.fft.ifft(z, norm="none")
    with pytest.raises(TypeError, match=r"\[rfft\] x: got complex64, expected real .*fft.fft takes"):
        dt.fft.rfft(z)
    with pytest.raises(ValueError, match=r"\[fftn\] axes: .*each axis once"):
        dt.fft.fftn(dt.zeros((2, 2)), axes=(0, 0))


def test_eigenvalues_of_any_matrices_come_from_the_host():
    a = draw(3, 5, 5).real.copy()
    values, vectors = (r.numpy() for r in dt.linalg.eig(dt.asarray(a, device="cpu:0")))
    np.testing.assert_allclose(a @ vectors, vectors * values[:, None, :], atol=1e-12)
    x = dt.asarray(a, device="sim:0")
    before = dt.fallback("error")
    try:
        with pytest.raises(NotImplementedError, match=r"\[linalg.eigvals\] runs on the host.*fallback\('allow'\)"):
            dt.linalg.eigvals(x)
        dt.fallback("warn")
        with pytest.warns(dt.FallbackWarning, match=r"\[linalg.eigvals\] runs on the host"):
            got = dt.linalg.eigvals(x)
        assert got.device.name == "sim:0"
        np.testing.assert_allclose(np.sort(got.numpy()), np.sort(values), atol=1e-12)
    finally:
        dt.fallback(before)
