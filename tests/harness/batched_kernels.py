"""Kernels of linear algebra on batches that are split over devices; a child of `test_platforms`.

Prints the collectives of each program, of both libraries: kernels take a batch in parts.
"""

import json
import re

import jax
import numpy as np

import minijax

PROGRAMS = {
    "cholesky": lambda m, x: m.lax.linalg.cholesky(x, symmetrize_input=False),
    "qr": lambda m, x: m.lax.linalg.qr(x), "lu": lambda m, x: m.lax.linalg.lu(x),
    "eigh": lambda m, x: m.lax.linalg.eigh(x), "svd": lambda m, x: m.lax.linalg.svd(x),
    "eig": lambda m, x: m.lax.linalg.eig(x), "schur": lambda m, x: m.lax.linalg.schur(x),
    "hessenberg": lambda m, x: m.lax.linalg.hessenberg(x),
    "triangular_solve": lambda m, x: m.lax.linalg.triangular_solve(x, x, left_side=True),
}  # fmt: skip
found = {}
for m in (minijax, jax):
    mesh = m.sharding.Mesh(np.array(m.devices("cpu")[:4]), ("x",))
    x = np.broadcast_to(np.eye(5, dtype=np.float32) * 2, (8, 5, 5))
    x = m.device_put(x, m.sharding.NamedSharding(mesh, m.sharding.PartitionSpec("x")))
    for name, function in PROGRAMS.items():
        text = m.jit(lambda x, f=function, m=m: f(m, x)).lower(x).compile().as_text()
        calls = re.findall(r" (all-[a-z]+|collective-permute|reduce-scatter)\(", text)
        found.setdefault(name, []).append(calls)
print(json.dumps(found))
