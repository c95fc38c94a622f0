"""`minijax.experimental.compilation_cache`: the folder where compiled programs are kept."""
