"""`minijax.scipy.integrate`. Only re-exports."""

from minijax.numpy import trapezoid

__all__ = ["trapezoid"]
