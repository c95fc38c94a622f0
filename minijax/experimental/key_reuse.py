"""Checking that no random key is used twice.

The setting `debug_key_reuse` turns it on, for the process or for a while:

    with minijax.debug_key_reuse(True):
        key = minijax.random.key(0)
        a, b = minijax.random.normal(key), minijax.random.uniform(key)    # KeyReuseError

A key is used up by a draw and by `split`; `fold_in` does not use one up. What is checked are typed
keys, eagerly and in compiled programs. There is nothing to call here.
"""

__all__: list[str] = []
