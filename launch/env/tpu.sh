# shellcheck shell=bash
# Settings for TPUs, to be sourced before jaxenc starts: `source launch/env/tpu.sh`. What is set already stays.
#
# Only libtpu reads LIBTPU_INIT_ARGS, and it ends the process at a flag that it does not know: a test asks the libtpu of the extra `tpu`. The
# flags are those of MaxText's benchmarks/xla_flags_library.py that concern what an encoder does, which is to reduce gradients (dp) and to
# gather weights (fsdp). What they gain was not measured here.

# Warnings and errors of XLA and not its notes (jax's documentation; 0 shows all).
export TF_CPP_MIN_LOG_LEVEL="${TF_CPP_MIN_LOG_LEVEL-1}"
# Collectives run beside the computation, gathers of weights among them, over several steps of it.
libtpu_flags='--xla_tpu_enable_async_collective_fusion=true --xla_tpu_enable_async_collective_fusion_fuse_all_gather=true'
libtpu_flags+=' --xla_tpu_enable_async_collective_fusion_multiple_steps=true --xla_tpu_overlap_compute_collective_tc=true'
libtpu_flags+=' --xla_enable_async_all_gather=true'
if [ "${MEGASCALE_NUM_SLICES:-1}" -gt 1 ]; then
  # Gradients between slices, over the slower network of the data center.
  libtpu_flags+=' --xla_tpu_enable_data_parallel_all_reduce_opt=true --xla_tpu_data_parallel_opt_different_sized_ops=true'
fi
export LIBTPU_INIT_ARGS="${LIBTPU_INIT_ARGS-$libtpu_flags}"
unset libtpu_flags
