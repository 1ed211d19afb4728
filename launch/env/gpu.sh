# shellcheck shell=bash
# Settings for NVIDIA GPUs, to be sourced before jaxenc starts: `source launch/env/gpu.sh`. What is set already stays.
#
# Left out on purpose: JAX_OPTIMIZATION_LEVEL=O1 (no change for bert/base on one H200, measured), NCCL_NVLS_ENABLE=1 (NCCL uses NVLink SHARP by
# itself where it works, and 1 makes it an error where it does not), --xla_disable_hlo_passes=all-reduce-contiguous (dp on two H200 0.7 %
# faster, measured, its losses not compared yet: docs/benchmarks.md), lists of combine thresholds (they follow the model).

# Warnings and errors of XLA and not its notes (jax's documentation; 0 shows all).
export TF_CPP_MIN_LOG_LEVEL="${TF_CPP_MIN_LOG_LEVEL-1}"
# jax takes three quarters of a GPU's memory; a GPU that is not shared can give more. NCCL and cuDNN need the rest (JAX-Toolbox: 0.8 to 0.9).
export XLA_PYTHON_CLIENT_MEM_FRACTION="${XLA_PYTHON_CLIENT_MEM_FRACTION-0.90}"
# Gradients are reduced while the backward pass goes on: the one XLA flag that JAX-Toolbox's images set.
export XLA_FLAGS="${XLA_FLAGS---xla_gpu_enable_latency_hiding_scheduler=true}"
# Says why a network or a link failed, and nothing while all is well (NCCL's documentation).
export NCCL_DEBUG="${NCCL_DEBUG-WARN}"
# One queue to the GPU keeps NCCL's kernels in order with the others. For Hopper (9.0) only: JAX-Toolbox advises against it on Blackwell.
if [ -z "${CUDA_DEVICE_MAX_CONNECTIONS+set}" ] && [ "$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | sort -u)" = 9.0 ]; then
  export CUDA_DEVICE_MAX_CONNECTIONS=1
fi
