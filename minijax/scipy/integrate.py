"""`minijax.scipy.integrate`. Only re-exports."""

from minijax.numpy import trapezoid
from minijax.tracebacks import public

__all__ = ["trapezoid"]

__dir__ = public(__name__)
