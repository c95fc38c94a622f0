"""Arguments of transformed functions: their names and numbers, and the errors of wrong ones.

Everything here runs when a function is transformed or traced, never on a cached call.
"""
