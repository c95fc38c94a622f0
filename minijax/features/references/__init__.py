"""References: arrays that are changed in place."""
