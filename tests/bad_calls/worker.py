"""A child process that makes calls in one library and writes what came of each.

`python -m tests.bad_calls.worker LIBRARY FILE START GIB` reads a list of calls from FILE, and writes
`+ index` before and `= index outcome` after each to its standard output; the calls write nowhere.
"""

import dis
import gc
import json
import os
import resource
import signal
import sys
import tempfile
import warnings

_RAISING = {dis.opmap[name] for name in ("RAISE_VARARGS", "RERAISE") if name in dis.opmap}


def _summary(library, result):
    """The types, shapes and dtypes of a result."""
    leaves = library.tree_util.tree_leaves(result)
    if len(leaves) > 20:
        return f"{len(leaves)} leaves"
    return [
        f"{leaf.dtype}{list(leaf.shape)}"
        if hasattr(leaf, "dtype") and isinstance(getattr(leaf, "shape", None), tuple)
        else type(leaf).__name__
        for leaf in leaves
    ]


def _failure(error):
    """Class, message, and the innermost line; `raised` tells a `raise` from an accident."""
    where, through, raised, user = "", "", True, False
    link = error.__traceback__
    while link is not None:
        code = link.tb_frame.f_code
        where = f"{code.co_filename}:{link.tb_lineno} {code.co_name}"
        if "/minijax/" in where:
            through = where
        raised = code.co_code[link.tb_lasti] in _RAISING
        user = code.co_filename == "<call>"
        link = link.tb_next
    return {
        "error": type(error).__name__,
        "kinds": [kind.__name__ for kind in type(error).__mro__],
        "text": str(error)[:1500],
        "where": where,
        "through": through,  # the innermost line of this package
        "raised": raised,
        "user": user,
    }


def _outcome(library, text, names):
    try:
        result = eval(compile(text, "<call>", "eval"), dict(names))
        result = library.block_until_ready(result)
        return {"ok": _summary(library, result)}
    except BaseException as error:  # SystemExit, too, is an outcome
        return _failure(error)


def main():
    name, path, start, gib = sys.argv[1:]
    out = os.fdopen(os.dup(1), "w", buffering=1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    with open(path) as file:
        texts = json.load(file)
    from tests.bad_calls.inputs import ARRAYS, namespace

    warnings.simplefilter("ignore")
    names = namespace(name)
    library = names["jax"]
    library.config.update("jax_traceback_filtering", "off")
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    limit = used + int(float(gib) * 2**30)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, 2**20))  # files that calls write
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    os.chdir(tempfile.mkdtemp(prefix="bad-calls-"))
    for index in range(int(start), len(texts)):
        text = texts[index]
        out.write(f"+ {index}\n")
        out.write(f"= {index} {json.dumps(_outcome(library, text, names))}\n")
        if "REF" in text:
            names["REF"] = library.new_ref(names["F"])
        if "donate" in text:
            names |= {key: library.numpy.asarray(array) for key, array in ARRAYS.items()}
            names["TREE"] = {"a": names["F"], "b": [names["S"], None]}
        if index % 3000 == 2999:
            library.clear_caches()
            gc.collect()
    out.flush()
    os._exit(0)  # threads of calls that hang do not hold the process


if __name__ == "__main__":
    main()
