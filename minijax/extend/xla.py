"""`minijax.extend.xla`: passes of one's own in XLA's compiler. Re-exports."""

from minijax.runtime.transformations import (
    PipelineStage,
    clear_hlo_module_transformation,
    register_hlo_module_transformation,
)

__all__ = ["PipelineStage", "clear_hlo_module_transformation", "register_hlo_module_transformation"]
