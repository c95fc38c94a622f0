"""From jaxprs to StableHLO modules, as text. See the layers in README.md."""
