"""`minijax.scipy.integrate`. Only re-exports."""

from minijax.namespace import shown
from minijax.numpy import trapezoid

__all__ = ["trapezoid"]

__dir__ = shown(__name__)
