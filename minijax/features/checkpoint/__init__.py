"""`checkpoint`: residuals that are computed again in the backward pass; policies, offloading."""
