"""The peak rates and the memory of accelerators, by the name that jax reports."""

import dataclasses

GIB = 2**30


@dataclasses.dataclass(frozen=True)
class Chip:
    """One device of jax; 0 where a number is not known.

    flops: dense bfloat16 FLOP/s. memory: bytes that a program may use; of a GPU, all of them. bandwidth: bytes/s between the device and
    its memory. interconnect: bytes/s that it sends to the others of its slice or host, over all its links together, in one direction.
    network: bytes/s that it sends to other slices or hosts.
    """

    flops: float
    memory: float
    bandwidth: float
    interconnect: float
    network: float


UNKNOWN = Chip(0, 0, 0, 0, 0)

# Each entry says where its numbers are from; the comment of the first of several lines holds for all of them. `memory` of a TPU is what
# libtpu's compiler leaves to a program ("exceeds available HBM", libtpu 0.0.42.1), of a GPU the size in its name. `network` of a GPU is one
# network card for each, as a DGX has: an assumption about the host.
CHIPS = {
    # docs.cloud.google.com/tpu/docs/v4, read in November 2026; six links of 50 GB/s: Jouppi et al. 2023, table 4.
    "TPU v4": Chip(275e12, 30.75 * GIB, 1200e9, 300e9, 0),
    # docs.cloud.google.com/tpu/docs/v5e, read in November 2026: half of the bidirectional bandwidth between chips, a pod's network / 256.
    "TPU v5 lite": Chip(197e12, 15.75 * GIB, 819e9, 200e9, 3.125e9),
    # docs.cloud.google.com/tpu/docs/tpu7x, the table of three generations, read in November 2026. libtpu calls a v5p "TPU v5", and a TPU7x
    # has two devices a chip, of which each gets half.
    "TPU v5": Chip(459e12, 95.74 * GIB, 2765e9, 600e9, 6.25e9),
    "TPU v6 lite": Chip(918e12, 31.25 * GIB, 1638e9, 400e9, 12.5e9),
    "TPU7x": Chip(2307e12 / 2, 94.75 * GIB, 7380e9 / 2, 1200e9 / 4, 12.5e9 / 2),
    # NVIDIA's data sheet of the A100 as glennklockwood.com/garden/processors/A100 cites it. The last is the card for PCIe.
    "NVIDIA A100-SXM4-40GB": Chip(312e12, 40e9, 1555e9, 300e9, 25e9),
    "NVIDIA A100-SXM4-80GB": Chip(312e12, 80e9, 2039e9, 300e9, 25e9),
    "NVIDIA A100": Chip(312e12, 40e9, 1555e9, 32e9, 25e9),
    # From memory: bfloat16 without sparsity, half of NVLink's (PCIe cards: PCIe's) total bandwidth. NVIDIA's data sheets were not at hand;
    # tables of others, read in November 2026, agree for the H100 and H200 of SXM and for the peak of the B200.
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
