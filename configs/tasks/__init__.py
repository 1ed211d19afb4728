"""Recipes of fine-tuning, for `jaxenc finetune`: the task, its files and its hyper-parameters."""
