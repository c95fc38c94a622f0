"""`minijax.experimental.source_mapper`: from lines of compiled programs back to the user's.

Re-exports. Source maps are those of ECMA-426 (https://tc39.es/source-map/), which browsers and
editors read.
"""

from minijax.experimental.source_mapper.common import (
    Pass,
    SourceMapDump,
    all_passes,
    compile_with_env,
    filter_passes,
    register_pass,
)
from minijax.experimental.source_mapper.generate_map import generate_sourcemaps
from minijax.experimental.source_mapper.hlo import HloPass
from minijax.experimental.source_mapper.jaxpr import canonicalize_filename
from minijax.experimental.source_mapper.mlir import create_mlir_sourcemap
from minijax.experimental.source_mapper.sourcemap import MappingsGenerator, SourceMap
from minijax.namespace import shown

__all__ = [
    "MappingsGenerator", "Pass", "SourceMap", "SourceMapDump", "all_passes",
    "canonicalize_filename", "compile_with_env", "create_mlir_sourcemap", "filter_passes",
    "generate_sourcemaps", "register_pass",
]  # fmt: skip

__dir__ = shown(__name__)
