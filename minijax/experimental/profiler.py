"""`minijax.experimental.profiler`: profiles as the compiler reads them. Re-exports."""

from minijax.runtime.profiling import get_profiled_instructions_proto

__all__ = ["get_profiled_instructions_proto"]
