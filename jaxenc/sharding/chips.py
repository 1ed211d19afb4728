"""What an accelerator can do by its maker's data sheet, under the name that jax reports for it."""

import dataclasses

GIB = 2**30


@dataclasses.dataclass(frozen=True)
class Chip:
    """One device of jax. flops: dense bfloat16 FLOP/s. memory: bytes that a program may use; for a GPU, all that the card has. bandwidth:
    bytes/s between the device and its memory. interconnect: bytes/s that the device sends to the others of its slice or host, over all its
    links together, in one direction. network: bytes/s that it sends to other slices or hosts. 0 where a number is not known."""

    flops: float
    memory: float
    bandwidth: float
    interconnect: float
    network: float


UNKNOWN = Chip(0, 0, 0, 0, 0)

# TPUs: docs.cloud.google.com/tpu/docs/v4, v5e, v5p, v6e and tpu7x, read in November 2026: peak compute (bf16), HBM bandwidth, half of the
# bidirectional inter-chip bandwidth (v4: six links of 50 GB/s, Jouppi et al. 2023, table 4), and the data center network by chip (v5e and
# v6e: that of a pod by its 256 chips). `memory` is what libtpu's compiler leaves to a program of the 32, 16, 95, 32 and 192 GiB of a chip
# ("exceeds available HBM", libtpu 0.0.42.1). libtpu calls a v5p "TPU v5", and a TPU7x has two devices a chip: each is half of it.
# GPUs: NVIDIA's data sheets of the A100, H100, H200, B200 and L4: bfloat16 without sparsity, half of NVLink's (L4, PCIe cards: PCIe's)
# total bandwidth, and the network card that a DGX has for each GPU.
CHIPS = {
    "TPU v4": Chip(275e12, 30.75 * GIB, 1200e9, 300e9, 0),
    "TPU v5 lite": Chip(197e12, 15.75 * GIB, 819e9, 200e9, 3.125e9),
    "TPU v5": Chip(459e12, 95.74 * GIB, 2765e9, 600e9, 6.25e9),
    "TPU v6 lite": Chip(918e12, 31.25 * GIB, 1638e9, 400e9, 12.5e9),
    "TPU7x": Chip(2307e12 / 2, 94.75 * GIB, 7380e9 / 2, 1200e9 / 4, 12.5e9 / 2),
    "NVIDIA A100-SXM4-40GB": Chip(312e12, 40e9, 1555e9, 300e9, 25e9),
    "NVIDIA A100-SXM4-80GB": Chip(312e12, 80e9, 2039e9, 300e9, 25e9),
    "NVIDIA A100": Chip(312e12, 40e9, 1555e9, 32e9, 25e9),
    "NVIDIA H100 80GB HBM3": Chip(989e12, 80e9, 3350e9, 450e9, 50e9),
    "NVIDIA H100 NVL": Chip(835e12, 94e9, 3900e9, 300e9, 50e9),
    "NVIDIA H100 PCIe": Chip(756e12, 80e9, 2000e9, 64e9, 50e9),
    "NVIDIA H100": Chip(989e12, 80e9, 3350e9, 450e9, 50e9),
    "NVIDIA H200": Chip(989e12, 141e9, 4800e9, 450e9, 50e9),
    "NVIDIA B200": Chip(2250e12, 180e9, 8000e9, 900e9, 50e9),
    "NVIDIA L4": Chip(121e12, 24e9, 300e9, 32e9, 0),
}


def of_kind(device_kind: str) -> Chip:
    """The chip that jax calls `device_kind` (`jax.Device.device_kind`): the entry with the longest name that it begins with, as whole
    words; UNKNOWN where there is none, as for a CPU."""
    begins = lambda name: device_kind == name or device_kind.startswith((f"{name} ", f"{name}-"))
    names = sorted(filter(begins, CHIPS), key=len)
    return CHIPS[names[-1]] if names else UNKNOWN
