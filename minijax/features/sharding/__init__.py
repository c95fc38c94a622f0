"""Arrays over several devices: made of their parts."""
