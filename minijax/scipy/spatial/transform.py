"""`minijax.scipy.spatial.transform`: rotations of space as unit quaternions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax import numpy as jnp
from minijax import random
from minijax.config import promoting_freely
from minijax.core.array import Array
from minijax.tracebacks import public

__all__ = ["Rotation", "Slerp"]


def _product(p: Any, q: Any) -> Any:
    """The product of quaternions, the real part last."""
    u, v, s, t = p[..., :3], q[..., :3], p[..., 3:], q[..., 3:]
    vector = s * v + t * u + jnp.cross(u, v)
    return jnp.concatenate([vector, s * t - jnp.sum(u * v, axis=-1, keepdims=True)], axis=-1)


def _normalized(q: Any) -> Any:
    return q / jnp.linalg.norm(q, axis=-1, keepdims=True)


def _vectors(x: Any, signature: str) -> Any:
    """Vectors along the last axis; ValueError for a number, as of a function with this signature."""
    x = jnp.asarray(x)
    if not x.ndim:
        raise ValueError(
            f"input with shape () does not have enough dimensions for all core dimensions "
            f"('{signature[1]}',) on vectorized function with excluded=frozenset() and "
            f"signature='{signature}': rotations are made of vectors, along the last axis."
        )
    return x


def _where(condition: Any, convert: Callable, x: Any) -> Any:
    """`convert(x)` where a condition holds, which may be an array."""
    if isinstance(condition, Array):
        return jnp.where(condition, convert(x), x)
    return convert(x) if condition else x


def _inverted(q: Any) -> Any:
    return q * np.asarray([-1, -1, -1, 1], q.dtype)


def _canonical(q: Any) -> Any:
    """Return the one of two opposite quaternions whose last nonzero element is positive."""
    negative = q[..., 3] < 0
    zero = q[..., 3] == 0
    for i in range(3):
        negative = negative | (zero & (q[..., i] < 0))
        zero = zero & (q[..., i] == 0)
    return jnp.where(negative[..., None], -q, q)


def _of_matrix(m: Any) -> Any:
    """Shepperd's method (1978): the largest of four divides the others."""
    d = jnp.diagonal(m, axis1=-2, axis2=-1)
    trace = jnp.sum(d, axis=-1)
    rows = []
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        row = [None] * 4
        row[i] = 1 - trace + 2 * m[..., i, i]
        row[j] = m[..., j, i] + m[..., i, j]
        row[k] = m[..., k, i] + m[..., i, k]
        row[3] = m[..., k, j] - m[..., j, k]
        rows.append(jnp.stack(row, axis=-1))
    pairs = ((2, 1), (0, 2), (1, 0))
    rows.append(jnp.stack([*[m[..., i, j] - m[..., j, i] for i, j in pairs], 1 + trace], axis=-1))
    choice = jnp.argmax(jnp.concatenate([d, trace[..., None]], axis=-1), axis=-1)
    found = jnp.take_along_axis(jnp.stack(rows, axis=-2), choice[..., None, None], axis=-2)
    return _normalized(found[..., 0, :])


def _of_rotvec(v: Any) -> Any:
    square = jnp.sum(v * v, axis=-1, keepdims=True)
    small = square <= 1e-6
    angle = jnp.sqrt(jnp.where(small, 1, square))
    series = 0.5 - square / 48 + square * square / 3840
    scale = jnp.where(small, series, jnp.sin(angle / 2) / angle)
    cosine = jnp.where(small, 1 - square / 8 + square * square / 384, jnp.cos(angle / 2))
    return jnp.concatenate([scale * v, cosine], axis=-1)


def _to_rotvec(q: Any) -> Any:
    q = _canonical(q)
    square = jnp.sum(q[..., :3] ** 2, axis=-1, keepdims=True)
    small = square <= 1e-7
    sine = jnp.sqrt(jnp.where(small, 1, square))
    angle = 2 * jnp.arctan2(sine, q[..., 3:])
    return q[..., :3] * jnp.where(small, 2 + square / 3, angle / sine)


def _axes_of(seq: str) -> tuple[list[int], bool]:
    """The axes of a sequence of Euler angles, and whether they turn with the body."""
    if not isinstance(seq, str):
        raise TypeError(f"Expected `seq` to be a string of axes, such as 'xyz'; got {seq!r}.")
    if not (1 <= len(seq) <= 3 and (set(seq) <= set("xyz") or set(seq) <= set("XYZ"))):
        raise ValueError(
            f"Expected axis specification to be a non-empty string of upto 3 characters, got {seq}"
            if not 1 <= len(seq) <= 3
            else f"Expected axes from `seq` to be from ['x', 'y', 'z'] or ['X', 'Y', 'Z'], got {seq}"
        )
    axes = ["xyz".index(axis) for axis in seq.lower()]
    if any(a == b for a, b in zip(axes, axes[1:], strict=False)):
        raise ValueError(f"Expected consecutive axes to be different, got {seq}")
    return axes, seq.isupper()


class Rotation(NamedTuple):
    """Rotations of space, one or a vector of them.

    - `quat`: unit quaternions of shape (4,) or (n, 4), the real part last

    Rotations are made by `from_quat`, `from_matrix`, `from_euler` and others.
    Source: SciPy's `spatial.transform.Rotation`.

    >>> jax.scipy.spatial.transform.Rotation.identity().as_quat()
    Array([0., 0., 0., 1.], dtype=float32)
    """

    quat: Any

    @classmethod
    def concatenate(cls, rotations: Sequence[Rotation]) -> Rotation:
        """All of several rotations."""
        return cls(jnp.concatenate([jnp.atleast_2d(r.quat) for r in rotations]))

    @classmethod
    def from_euler(cls, seq: str, angles: Any, degrees: bool = False) -> Rotation:
        """Make rotations from angles around one to three axes: "xyz" around fixed ones, "XYZ" of
        the body.
        """
        axes, is_intrinsic = _axes_of(seq)
        angles = jnp.asarray(angles)
        angles = angles.astype(jnp.result_type(angles, float))
        angles = _where(degrees, jnp.deg2rad, angles)
        angles = angles[..., None] if angles.ndim == 0 or angles.shape[-1] != len(axes) else angles
        if angles.shape[-1] != len(axes):
            raise ValueError(
                f"Expected `angles` to have {len(axes)} numbers along its last axis, one for each axis "
                f"of {seq!r}; got shape {angles.shape[:-1]}."
            )
        total = None
        for i, axis in enumerate(axes):
            part = _of_rotvec(angles[..., i, None] * np.eye(3, dtype=angles.dtype)[axis])
            if total is None:
                total = part
            else:
                total = _product(total, part) if is_intrinsic else _product(part, total)
        return cls(total)

    @classmethod
    def from_matrix(cls, matrix: Any) -> Rotation:
        """Make rotations from orthogonal matrices of determinant 1."""
        return cls(_of_matrix(jnp.asarray(matrix)))

    @classmethod
    def from_mrp(cls, mrp: Any) -> Rotation:
        """Make rotations from modified Rodrigues parameters: the axis times tan(angle / 4)."""
        mrp = _vectors(mrp, "(m)->(n)")
        square = jnp.sum(mrp * mrp, axis=-1, keepdims=True) + 1
        return cls(jnp.concatenate([2 * mrp, 2 - square], axis=-1) / square)

    @classmethod
    def from_quat(cls, quat: Any) -> Rotation:
        """Make rotations from quaternions, which are normalized."""
        return cls(_normalized(_vectors(quat, "(n)->(n)")))

    @classmethod
    def from_rotvec(cls, rotvec: Any, degrees: bool = False) -> Rotation:
        """Make rotations from axes times angles."""
        rotvec = _vectors(rotvec, "(m),()->(n)")
        return cls(_of_rotvec(_where(degrees, jnp.deg2rad, rotvec)))

    @classmethod
    def identity(cls, num: int | None = None, dtype: Any = float) -> Rotation:
        """Return the identity rotation, or `num` of them."""
        one = jnp.asarray([0, 0, 0, 1], dtype=dtype)
        return cls(one if num is None else jnp.tile(one, (num, 1)))

    @classmethod
    def random(cls, random_key: Any, num: int | None = None) -> Rotation:
        """Uniformly distributed rotations."""
        shape = (4,) if num is None else (num, 4)
        return cls(_normalized(random.normal(random_key, shape)))

    def __getitem__(self, indexer: Any) -> Rotation:
        if self.single:
            raise TypeError("Single rotation is not subscriptable.")
        return Rotation(self.quat[indexer])

    def __len__(self) -> int:
        if self.single:
            raise TypeError("Single rotation has no len().")
        return self.quat.shape[0]

    def __mul__(self, other: Rotation) -> Rotation:
        """First the other, then this."""
        return Rotation(_normalized(_product(self.quat, other.quat)))

    @property
    def single(self) -> bool:
        """Whether it is one rotation, not a vector of them."""
        return self.quat.ndim == 1

    def apply(self, vectors: Any, inverse: bool = False) -> Array:
        """Vectors turned: [3] or [vectors, 3]."""
        matrix = self.as_matrix()
        matrix = jnp.swapaxes(matrix, -1, -2) if inverse else matrix
        return jnp.sum(matrix * jnp.asarray(vectors)[..., None, :], axis=-1)

    def as_euler(self, seq: str, degrees: bool = False) -> Array:
        """Three angles around axes; see `from_euler`. Bernardes and Viollet (2022)."""
        if len(seq) != 3:
            raise ValueError(f"Expected 3 axes, got {seq}.")
        axes, is_intrinsic = _axes_of(seq)
        angles = _euler_angles(self.quat, axes, is_intrinsic)
        return _where(degrees, jnp.rad2deg, angles)

    def as_matrix(self) -> Array:
        """The matrices."""
        x, y, z, w = (self.quat[..., i] for i in range(4))
        rows = (
            (x * x - y * y - z * z + w * w, 2 * (x * y - z * w), 2 * (x * z + y * w)),
            (2 * (x * y + z * w), -x * x + y * y - z * z + w * w, 2 * (y * z - x * w)),
            (2 * (x * z - y * w), 2 * (y * z + x * w), -x * x - y * y + z * z + w * w),
        )
        return jnp.stack([jnp.stack(row, axis=-1) for row in rows], axis=-2)

    def as_mrp(self) -> Array:
        """The axes times tan(angle / 4)."""
        sign = jnp.where(self.quat[..., 3:] < 0, -1, 1).astype(self.quat.dtype)
        return sign * self.quat[..., :3] / (1 + sign * self.quat[..., 3:])

    def as_rotvec(self, degrees: bool = False) -> Array:
        """The axes times angles, of at most half a turn."""
        out = _to_rotvec(self.quat)
        return _where(degrees, jnp.rad2deg, out)

    def as_quat(self, canonical: bool = False, scalar_first: bool = False) -> Array:
        """The quaternions; of two that are the same rotation, with `canonical` always one."""
        quat = _canonical(self.quat) if canonical else self.quat
        return jnp.roll(quat, 1, axis=-1) if scalar_first else quat

    def inv(self) -> Rotation:
        """Return the inverse rotation."""
        return Rotation(_inverted(self.quat))

    def magnitude(self) -> Array:
        """The angles."""
        sine = jnp.linalg.norm(self.quat[..., :3], axis=-1)
        return 2 * jnp.arctan2(sine, jnp.abs(self.quat[..., 3]))

    def mean(self, weights: Any = None) -> Rotation:
        """The rotation of the least sum of squared distances: an eigenvector. Markley (2007)."""
        quat = jnp.atleast_2d(self.quat)
        weights = jnp.ones(quat.shape[0], quat.dtype) if weights is None else jnp.asarray(weights)
        if weights.ndim != 1 or weights.shape[0] != quat.shape[0]:
            raise ValueError(
                f"Expected `weights` to be 1 dimensional of {quat.shape[0]} elements, got shape "
                f"{weights.shape}."
            )
        _, vectors = jnp.linalg.eigh((weights[:, None] * quat).T @ quat)
        return Rotation(vectors[:, -1])


def _euler_angles(quat: Any, axes: list[int], is_intrinsic: bool) -> Any:
    i, j, k = axes if not is_intrinsic else axes[::-1]
    is_symmetric = i == k
    k = 3 - i - j if is_symmetric else k
    sign = float((i - j) * (j - k) * (k - i) // 2)
    a, b, c, d = quat[..., 3], quat[..., i], quat[..., j], quat[..., k] * sign
    if not is_symmetric:
        a, b, c, d = a - c, b + d, c + a, d - b
    middle = 2 * jnp.arctan2(jnp.hypot(c, d), jnp.hypot(a, b))
    half_sum, half_difference = jnp.arctan2(b, a), jnp.arctan2(d, c)
    # With the middle angle 0 or half a turn only a sum of the others is known: the last is 0.
    is_flat, is_back = jnp.abs(middle) <= 1e-7, jnp.abs(middle - np.pi) <= 1e-7
    first, third = half_sum - half_difference, half_sum + half_difference
    if is_intrinsic:
        turned = jnp.where(is_flat, 2 * half_sum, 2 * half_difference)
        third = jnp.where(is_flat | is_back, turned, third)
        first = jnp.where(is_flat | is_back, 0, first)
    else:
        turned = jnp.where(is_flat, 2 * half_sum, -2 * half_difference)
        first = jnp.where(is_flat | is_back, turned, first)
        third = jnp.where(is_flat | is_back, 0, third)
    if not is_symmetric:
        third = third * sign
        middle = middle - np.pi / 2
    outs = [third, middle, first] if is_intrinsic else [first, middle, third]
    angles = jnp.stack(outs, axis=-1)
    return jnp.where(
        angles < -np.pi, angles + 2 * np.pi, jnp.where(angles > np.pi, angles - 2 * np.pi, angles)
    )


class Slerp(NamedTuple):
    """Interpolation between rotations at a constant rate.

    - `times`: increasing times of shape (n,)
    - `rotations`: n rotations

    Made by `Slerp.init(times, rotations)`; calling it with times gives rotations. ValueError for
    another number of times.
    Source: SciPy's `spatial.transform.Slerp`; Shoemake (1985).

    >>> both = jax.scipy.spatial.transform.Rotation.from_quat(jnp.eye(4)[2:])
    >>> between = jax.scipy.spatial.transform.Slerp.init(jnp.array([0.0, 1.0]), both)
    >>> between(jnp.array([0.5])).as_quat().shape
    (1, 4)
    """

    times: Any
    timedelta: Any
    rotations: Rotation
    rotvecs: Any

    @classmethod
    @promoting_freely()
    def init(cls, times: Any, rotations: Rotation) -> Slerp:
        """Interpolate between rotations at increasing times."""
        times = jnp.asarray(times)
        if not isinstance(rotations, Rotation):
            raise TypeError(f"`rotations` must be a `Rotation` instance. Got {rotations!r}.")
        if rotations.single or len(rotations) < 2:
            raise ValueError("`rotations` must be a sequence of at least 2 rotations.")
        if times.ndim != 1 or times.shape[0] != len(rotations):
            raise ValueError(
                "Expected number of rotations to be equal to number of timestamps given, got "
                f"{len(rotations)} rotations and times of shape {times.shape}."
            )
        times = times.astype(rotations.quat.dtype)
        before, after = rotations[:-1], rotations[1:]
        return cls(times, jnp.diff(times), before, (before.inv() * after).as_rotvec())

    @promoting_freely()
    def __call__(self, times: Any) -> Rotation:
        """The rotations at times."""
        times = jnp.asarray(times)
        asked = jnp.atleast_1d(times)
        place = jnp.clip(jnp.searchsorted(self.times, asked) - 1, 0, self.timedelta.shape[0] - 1)
        part = (asked - self.times[place]) / self.timedelta[place]
        moved = Rotation.from_rotvec(self.rotvecs[place] * part[:, None])
        out = Rotation(self.rotations.quat[place]) * moved
        return Rotation(out.quat[0]) if times.ndim == 0 else out


__dir__ = public(__name__)
