"""What compiled functions cost: XLA's FLOPs, bytes and temporary memory beside upstream's.

A row is an expression on the arrays of `INPUTS`, compiled by both libraries. Worst ratios first; a
row above 1.05 tells how long it runs beside upstream's, and why XLA counts more.
"""

import re
import warnings

import jax
import numpy as np

import minijax
from minijax.config import override
from tests.benchmarks.timing import compare_typical

_rng = np.random.RandomState(0)

INPUTS = {
    "x": _rng.randn(64, 128).astype(np.float32),
    "y": _rng.randn(64, 128).astype(np.float32),
    "v": _rng.randn(4096).astype(np.float32),
    "w": np.sort(_rng.randn(512)).astype(np.float32),
    "a": _rng.randn(64, 64).astype(np.float32),
    "z": (_rng.randn(64, 64) + 1j * _rng.randn(64, 64)).astype(np.complex64),
    "i": _rng.randint(0, 64, 512).astype(np.int32),
    "n": _rng.randint(-50, 50, (64, 128)).astype(np.int32),
    "b": _rng.rand(64, 128) > 0.5,
    "img": _rng.randn(4, 32, 32, 8).astype(np.float32),
    "ker": _rng.randn(3, 3, 8, 16).astype(np.float32),
}

CALLS = """
jnp.sin(x)
jnp.sinc(x)
jnp.logaddexp(x, y)
jnp.hypot(x, y)
jnp.arctan2(x, y)
jnp.power(x, y)
x ** 7
jnp.mod(x, y)
jnp.floor_divide(n, 7)
jnp.divmod(n, 7)
jnp.gcd(n, 12)
jnp.lcm(n, 12)
jnp.heaviside(x, y)
jnp.nan_to_num(x)
jnp.frexp(x)
jnp.ldexp(x, 3)
jnp.nextafter(x, y)
jnp.cbrt(x)
jnp.round(x, 2)
jnp.clip(x, -1, 1)
jnp.where(b, x, y)
jnp.sum(x, axis=1)
jnp.prod(x, axis=0)
jnp.mean(x)
jnp.var(x, axis=0)
jnp.std(x)
jnp.max(x, axis=1)
jnp.ptp(x, axis=0)
jnp.argmax(x, axis=1)
jnp.nanmean(x, axis=1)
jnp.nanvar(x, axis=1)
jnp.nanargmin(x, axis=1)
jnp.nanmax(x)
jnp.median(x, axis=1)
jnp.quantile(x, 0.3, axis=1)
jnp.nanquantile(x, 0.3, axis=1)
jnp.percentile(v, 30)
jnp.average(x, weights=y, axis=1)
jnp.cov(x)
jnp.corrcoef(x)
jnp.histogram(v, bins=16)
jnp.bincount(i, length=64)
jnp.digitize(v, w)
jnp.searchsorted(w, v)
jnp.cumsum(v)
jnp.cumsum(x, axis=0)
jnp.cumprod(x, axis=1)
jnp.nancumsum(x, axis=1)
jnp.diff(v)
jnp.gradient(v)
jnp.ediff1d(v)
jnp.trapezoid(v)
jnp.interp(v, w, w)
jnp.sort(x, axis=1)
jnp.sort(v)
jnp.argsort(x, axis=0)
jnp.lexsort((i, i))
jnp.partition(v, 10)
jnp.argpartition(v, 10)
jnp.unique(i, size=64)
jnp.union1d(i, i, size=64)
jnp.intersect1d(i, i, size=64)
jnp.setdiff1d(i, i, size=64)
jnp.isin(i, i)
jnp.nonzero(b, size=100)
jnp.argwhere(b, size=100)
jnp.flatnonzero(b, size=100)
jnp.take(x, i % 64, axis=0)
jnp.take_along_axis(x, n % 64, axis=0)
jnp.compress(b[0], x, axis=1, size=20)
jnp.extract(b, x, size=20)
jnp.choose(i % 2, [i, i])
jnp.select([b, ~b], [x, y])
jnp.piecewise(x, [x < 0, x > 1], [0.0, lambda t: t, 2.0])
x[i % 64]
x[b.any(axis=1).astype(int), :3]
x[::2, ::-1]
x.at[i % 64].add(1.0)
x.at[i % 64].set(0.0)
x.at[3].set(1.0)
x.at[:, 2:5].multiply(2.0)
x.at[i % 64].max(0.0)
jnp.concatenate([x, y], axis=1)
jnp.stack([x, y])
jnp.tile(x, (2, 2))
jnp.repeat(x, 3, axis=0)
jnp.roll(x, 5, axis=1)
jnp.flip(x)
jnp.rot90(x)
jnp.pad(x, 3)
jnp.pad(x, 3, mode="reflect")
jnp.pad(x, 3, mode="wrap")
jnp.triu(a)
jnp.tril(a, -1)
jnp.diag(a)
jnp.diagonal(a)
jnp.trace(a)
jnp.eye(64)
jnp.tri(64)
jnp.vander(w, 8)
jnp.kron(a, a[:4, :4])
jnp.outer(v, w)
jnp.cross(x[:, :3], y[:, :3])
jnp.matmul(a, x)
jnp.einsum("ij,kj->ik", x, y)
jnp.einsum("ij,jk,kl->il", a, a, a)
jnp.tensordot(x, y, axes=2)
jnp.vdot(v, v)
jnp.convolve(v, w[:64])
jnp.correlate(v, w[:64])
jnp.polyval(w[:8], v)
jnp.polymul(w[:8], w[:9])
jnp.polyint(w)
jnp.unwrap(v)
jnp.i0(x)
jnp.packbits(b)
jnp.unpackbits(b.astype(jnp.uint8))
jnp.linspace(0.0, 1.0, 1000)
jnp.meshgrid(w, w)
jnp.blackman(64)
jnp.linalg.norm(x)
jnp.linalg.norm(a, ord=2)
jnp.linalg.det(a)
jnp.linalg.slogdet(a)
jnp.linalg.inv(a)
jnp.linalg.solve(a, a)
jnp.linalg.lstsq(a, a)
jnp.linalg.pinv(a)
jnp.linalg.matrix_power(a, 5)
jnp.linalg.matrix_rank(a)
jnp.linalg.cholesky(a @ a.T)
jnp.linalg.qr(a)
jnp.linalg.svd(a)
jnp.linalg.eigh(a)
jnp.linalg.eigvals(a)
jnp.linalg.cond(a)
jnp.linalg.multi_dot([a, x, y.T])
jnp.fft.fft(z)
jnp.fft.rfft(v)
jnp.fft.irfft2(z)
jnp.fft.fftshift(x)
lax.sort((i, i), num_keys=2)
lax.top_k(x, 5)
lax.cumlogsumexp(x, axis=1)
lax.cummax(x, axis=0)
lax.reduce_window(x, 0.0, lax.add, (2, 2), (2, 2), "VALID")
lax.conv_general_dilated(img, ker, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
lax.associative_scan(jnp.add, v)
lax.fori_loop(0, 10, lambda k, c: c * 2, x)
lax.scan(lambda c, t: (c + t, c * t), x[0], x)
lax.map(lambda t: t * 2, x)
lax.dynamic_update_slice(x, y[:4, :4], (i[0], i[1]))
lax.logistic(x)
lax.erf_inv(x)
lax.lgamma(x)
lax.digamma(x)
lax.igamma(jnp.abs(x), jnp.abs(y))
nn.relu(x)
nn.gelu(x)
nn.softmax(x)
nn.log_softmax(x)
nn.logsumexp(x, axis=1)
nn.standardize(x)
nn.one_hot(i, 64)
nn.silu(x)
nn.selu(x)
nn.glu(x)
nn.dot_product_attention(img, img, img)
random.uniform(key, (1000,))
random.normal(key, (1000,))
random.bits(key, (1000,))
random.split(key, 10)
random.randint(key, (1000,), 0, 100)
random.permutation(key, 1000)
random.choice(key, 1000, (10,), replace=False)
random.choice(key, 1000, (10,))
random.categorical(key, x)
random.truncated_normal(key, -1, 1, (1000,))
random.gamma(key, 2.0, (100,))
random.dirichlet(key, w[:8] + 5)
random.poisson(key, 3.0, (100,))
random.multivariate_normal(key, w[:8], jnp.eye(8))
"""

# Under reverse mode: the sum of the squares of the result, differentiated in the first array.
GRADIENTS = """
jnp.var(x, axis=0)
jnp.std(x)
jnp.prod(x, axis=0)
jnp.cumsum(v)
jnp.cumprod(x, axis=1)
jnp.max(x, axis=1)
jnp.sort(x, axis=1)
jnp.median(x, axis=1)
jnp.logaddexp(x, y)
x / y
x ** 3
jnp.power(jnp.abs(x), y)
jnp.sinc(x)
jnp.hypot(x, y)
jnp.take(x, i % 64, axis=0)
x.at[i % 64].add(1.0)
x.at[i % 64].set(0.0)
x[::2, ::-1]
jnp.where(b, x, y)
jnp.clip(x, -1, 1)
jnp.matmul(a, x)
jnp.einsum("ij,jk,kl->il", a, a, a)
jnp.convolve(v, w[:64])
jnp.linalg.det(a)
jnp.linalg.slogdet(a)[1]
jnp.linalg.inv(a)
jnp.linalg.solve(a, a)
jnp.linalg.cholesky(a @ a.T)
jnp.linalg.qr(a)[0]
jnp.linalg.svd(a)[1]
jnp.linalg.eigh(a)[0]
jnp.linalg.norm(x)
jnp.linalg.matrix_power(a, 5)
jnp.interp(v, w, w)
lax.conv_general_dilated(img, ker, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
lax.conv_general_dilated(img, ker, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (2, 2), "VALID")
lax.reduce_window(x, 0.0, lax.add, (3, 3), (1, 1), "SAME")
lax.scan(lambda c, t: (c * t, jnp.sin(c)), x[0], x)[1]
lax.fori_loop(0, 10, lambda k, c: c * c, x)
lax.associative_scan(jnp.multiply, v)
lax.cumlogsumexp(x, axis=1)
lax.top_k(x, 5)[0]
nn.softmax(x)
nn.log_softmax(x)
nn.logsumexp(x, axis=1)
nn.gelu(x)
nn.standardize(x)
nn.dot_product_attention(img, img, img)
"""

_NAMES = re.compile(r"(?<![\w.\"])(" + "|".join(INPUTS) + r")(?![\w\"=])")


def lines(text):
    return [line for line in text.splitlines() if line]


def function_of(m, text, gradient=False):
    """The expression as a function of the arrays that it names, and those arrays."""
    names = sorted(set(_NAMES.findall(text)))
    code = compile(text, text, "eval")
    space = {"jnp": m.numpy, "lax": m.lax, "random": m.random, "nn": m.nn}

    def fun(*args):
        given = dict(zip(names, args, strict=True))
        if "key" in text:
            given["key"] = m.random.key(0)
        return eval(code, {**space, **given})

    def squares(*args):
        return m.numpy.sum(m.numpy.square(fun(*args)))

    return (m.grad(squares) if gradient else fun), [INPUTS[name] for name in names]


def compiled(m, text, gradient=False):
    fun, args = function_of(m, text, gradient)
    args = [m.numpy.asarray(x) for x in args]
    with override("enable_compilation_cache", False):
        return m.jit(fun).lower(*args).compile(), args


def costs(program):
    found = program.cost_analysis()
    memory = program.memory_analysis()
    return [
        max(found.get("flops", 0.0), 0.0) + max(found.get("transcendentals", 0.0), 0.0),
        found.get("bytes accessed", 0.0),
        float(memory.temp_size_in_bytes),
    ]


def ratio(ours, theirs, least):
    """Ours to theirs; what is less than `least` on both sides counts as equal."""
    return max(ours, least) / max(theirs, least)


# Why something costs more by XLA's account, by a pattern of the row.
REASONS = {
    "sort|median|percentile|quantile|partition": "sorted as integers, whose comparison is one",
    "extract|compress|union1d|unique": "counts by blocks instead of a pass for each power of two",
    "argm": "compared as integers, which takes no care of NaN in the loop",
    "cum": "by blocks: less work, in more pieces",
    "slogdet": "the identity that is solved for is scattered into zeros, not made by a mask",
    "det": "the gradient is right for singular matrices too",
    "sinc": "the quotient is kept for its derivative, not computed again",
    "attention": "probabilities are laid out for the product with the values",
    "qr": "one matrix more is alive at once",
}


def why(label):
    for pattern, reason in REASONS.items():
        if re.search(pattern, label):
            return reason
    return "no reason is known"


def rows(table=None, only=""):
    found = []
    for gradient, text in [(False, t) for t in lines(CALLS)] + [
        (True, t) for t in lines(GRADIENTS)
    ]:
        label = f"grad of {text}" if gradient else text
        if only not in label:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                programs = [compiled(m, text, gradient) for m in (minijax, jax)]
            except Exception as error:
                print(f"  {label}: {type(error).__name__}: {str(error)[:150]}")
                continue
        ours, theirs = (costs(program) for program, _ in programs)
        ratios = [
            ratio(o, t, least) for o, t, least in zip(ours, theirs, (256, 4096, 4096), strict=True)
        ]
        found.append((max(ratios), label, ratios, programs))
    found.sort(key=lambda row: -row[0])
    print("\n== compiled cost, minijax / upstream: FLOPs, bytes, temporary memory (worst first)")
    for worst, label, ratios, programs in found:
        over = f"  time {times(programs):.2f}: {why(label)}" if worst > 1.05 else ""
        print(f"  {label[:60]:60s}" + "".join(f" {r:7.3f}" for r in ratios) + over)
    over = sum(row[0] > 1.05 for row in found)
    print(f"  {len(found)} rows, {over} above 1.05")
    return found


def times(programs):
    """Ours to theirs of how long two compiled programs run."""
    calls = [
        lambda m=m, program=program, args=args: m.block_until_ready(program(*args))
        for m, (program, args) in zip((minijax, jax), programs, strict=True)
    ]
    ours, theirs = compare_typical(*calls, blocks=40)
    return ours / theirs
