"""Speed, side by side with upstream: `python -m tests.benchmarks`. Not run by the tests."""
