"""The only modules that touch jaxlib's client. See the layers in README.md."""
