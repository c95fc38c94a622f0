"""`minijax.example_libraries`: small libraries that older programs use. May import `numpy`."""
