"""Descriptions of NVIDIA's cards, for which XLA compiles without a card: it needs jax's CUDA plugin, but no driver and no CUDA library."""

import dataclasses
from collections.abc import Mapping

import jax
from jax.experimental import topologies

from jaxenc.sharding import chips

# Versions of CUDA that jax has plugins for, the newest first.
CUDA = ("13", "12")


@dataclasses.dataclass(frozen=True)
class Card:
    """kind: as jax reports it. capability: the compute capability. cores: streaming multiprocessors. cache: bytes of L2. clock: GHz. Its
    memory and bandwidth are in `sharding.chips`."""

    kind: str
    capability: str
    cores: int
    cache: int
    clock: float


# From NVIDIA's white papers of the two architectures; not checked against them.
CARDS: Mapping[str, Card] = {
    "a100": Card("NVIDIA A100-SXM4-80GB", "8.0", 108, 40 * 2**20, 1.41),
    "h100": Card("NVIDIA H100 80GB HBM3", "9.0", 132, 50 * 2**20, 1.98),
    "h200": Card("NVIDIA H200", "9.0", 132, 50 * 2**20, 1.98),
}


def description(card: Card) -> str:
    """The card as XLA's compiler takes it, the text of its GpuTargetConfigProto (xla/tools/hlo_opt/gpu_specs has examples)."""
    chip, (major, _, minor) = chips.of_kind(card.kind), card.capability.partition(".")
    shared = 233_472 if major == "9" else 167_936  # bytes of a multiprocessor; a block gets 1 KiB less
    return f"""
        gpu_device_info {{
          threads_per_block_limit: 1024 threads_per_warp: 32 threads_per_core_limit: 2048
          shared_memory_per_block: 49152 shared_memory_per_core: {shared} shared_memory_per_block_optin: {shared - 1024}
          core_count: {card.cores} fpus_per_core: {128 if major == "9" else 64} block_dim_limit_x: 2147483647 block_dim_limit_y: 65535
          block_dim_limit_z: 65535 memory_bandwidth: {chip.bandwidth:.0f} l2_cache_size: {card.cache} clock_rate_ghz: {card.clock}
          device_memory_size: {chip.memory:.0f} registers_per_core_limit: 65536 registers_per_block_limit: 65536
          cuda_compute_capability {{ major: {major} minor: {minor} }}
        }}
        platform_name: "CUDA" dnn_version_info {{ major: 9 minor: 10 }} runtime_version {{ major: 13 }}
        device_description_str: "{card.kind}"
    """


def devices(kind: str, count: int) -> list[jax.Device]:
    """`count` cards of one host, to compile for and not to run on."""
    jax.devices()  # which loads the plugins
    card = next(card for card in CARDS.values() if card.kind == kind)
    return list(topologies.get_topology_desc(platform="cuda", target_config=description(card), topology=f"1x1x{count}").devices)
