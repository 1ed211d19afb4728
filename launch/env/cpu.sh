# shellcheck shell=bash
# Settings for CPUs, to be sourced before jaxenc starts: `source launch/env/cpu.sh`. What is set already stays.

# Without it jax looks for accelerators first, and on a machine that has some it takes them.
export JAX_PLATFORMS="${JAX_PLATFORMS-cpu}"
# Warnings and errors of XLA and not its notes (jax's documentation; 0 shows all).
export TF_CPP_MIN_LOG_LEVEL="${TF_CPP_MIN_LOG_LEVEL-1}"
