"""Objects of which a process has one are pickled by their names.

Functions that a transform makes are pickled by value where the function that they transform is, as
cloudpickle does with those of a notebook. What they refer to is then that of the process which
loads them.
"""

from __future__ import annotations

import copyreg

from minijax.config import config, local
from minijax.core.hooks import hooks
from minijax.core.trace import eval_trace
from minijax.features.slots import slots

_named = {
    "config": config,
    "eval_trace": eval_trace,
    "hooks": hooks,
    "local": local,
    "slots": slots,
}
for _name, _one in _named.items():
    copyreg.pickle(type(_one), lambda one, name=_name: name)
