"""What holds for all tests: compiled programs do not outlive the file that made them."""

import gc

import jax
import pytest

import minijax


@pytest.fixture(autouse=True, scope="module")
def _bounded_memory():
    yield
    minijax.clear_caches()
    jax.clear_caches()
    gc.collect()
