"""Two processes of two devices each train together; started by one command, run as it is.

Without arguments it starts the processes and waits for them. Each has half of the data; the result
is that of one process with all of it.
"""

import os
import socket
import subprocess
import sys

PROCESSES, DEVICES = 2, 2


def start():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    flags = f"--xla_force_host_platform_device_count={DEVICES} {os.environ.get('XLA_FLAGS', '')}"
    environment = {**os.environ, "XLA_FLAGS": flags, "TF_CPP_MIN_LOG_LEVEL": "3"}
    started = [
        subprocess.Popen([sys.executable, __file__, str(n), str(port)], env=environment)
        for n in range(PROCESSES)
    ]
    try:
        sys.exit(max(process.wait(timeout=300) for process in started))
    finally:
        for process in started:
            process.kill()


def train(number, port):
    import numpy as np

    import minijax as jax
    import minijax.numpy as jnp
    from minijax.sharding import Mesh, NamedSharding
    from minijax.sharding import PartitionSpec as P

    jax.distributed.initialize(f"127.0.0.1:{port}", PROCESSES, number)
    rng = np.random.RandomState(0)
    data = rng.randn(64, 8).astype(np.float32)
    target = np.sin(data @ rng.randn(8).astype(np.float32))

    def loss(params, x, y):
        hidden = jnp.tanh(x @ params["w"] + params["b"])
        return jnp.mean((hidden @ params["v"] - y) ** 2)

    @jax.jit
    def step(params, x, y):
        value, grads = jax.value_and_grad(loss)(params, x, y)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value

    def run(params, x, y):
        for _ in range(20):
            params, value = step(params, x, y)
            value.block_until_ready()  # one step at a time: gloo's collectives wait for each other
        return float(value)

    params = {
        "w": rng.randn(8, 16).astype(np.float32) * 0.3,
        "b": np.zeros(16, np.float32),
        "v": rng.randn(16).astype(np.float32) * 0.3,
    }
    rows = NamedSharding(Mesh(np.array(jax.devices()), ("data",)), P("data"))
    half = slice(number * len(data) // PROCESSES, (number + 1) * len(data) // PROCESSES)
    x, y = (jax.make_array_from_process_local_data(rows, a[half]) for a in (data, target))
    together = run(params, x, y)
    alone = run(params, data, target)
    print(
        f"process {number} of {jax.process_count()}, {len(jax.devices())} devices: "
        f"loss {together:.6f}; alone {alone:.6f}",
        flush=True,
    )
    assert abs(together - alone) < 1e-4 * alone
    jax.distributed.shutdown()


if __name__ == "__main__":
    if len(sys.argv) == 1:
        start()
    train(int(sys.argv[1]), sys.argv[2])
