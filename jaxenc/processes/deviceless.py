"""The environment of a process that compiles for accelerators that its machine does not have."""

# JAX_PLATFORMS: the accelerators of this machine stay free. TPU_SKIP_MDS_QUERY: libtpu asks no metadata server for its TPU, which takes
# a minute where there is none. ALLOW_MULTIPLE_LIBTPU_LOAD: several compilations at once do not wait for one another's lock of the TPU.
# TPU_ACCELERATOR_TYPE and TPU_WORKER_HOSTNAMES: any valid values. Without them libtpu prints five lines of warnings; in either case it
# compiles for the topology that it is asked for.
SETTINGS = {
    "JAX_PLATFORMS": "cpu",
    "TPU_SKIP_MDS_QUERY": "1",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "TPU_ACCELERATOR_TYPE": "v5litepod-4",
    "TPU_WORKER_HOSTNAMES": "localhost",
}


def settings() -> dict[str, str]:
    """The environment variables; set them before JAX is imported."""
    return dict(SETTINGS)
