"""`minijax.extend.ifrt_programs`: jaxlib's makers of programs and compile options for plug-ins."""

from minijax.runtime.versions import _jax

ifrt_programs = _jax.ifrt_programs

__all__ = ["ifrt_programs"]
