"""Is my loss normal? Reference curves of recipes, and comments on a run that is compared with them."""
