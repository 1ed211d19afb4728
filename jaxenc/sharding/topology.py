"""Accelerators to compile for, by name, which this machine need not have: `v5e:16x16` is a slice of 256 chips, `h100:8` eight cards."""

import contextlib
import dataclasses
import math
import os
import re
from collections.abc import Mapping
from importlib.util import find_spec

import jax
from jax.experimental import topologies

from jaxenc.errors import UserError
from jaxenc.sharding import cards

# {name: (number of axes of a shape, kind that libtpu reports, options of libtpu)}. A v4 is one device with both its cores, as on a TPU VM.
TPUS: Mapping[str, tuple[int, str, Mapping[str, str]]] = {
    "v4": (3, "TPU v4", {"chip_config_name": "megacore"}),
    "v5e": (2, "TPU v5 lite", {}),
    "v5p": (3, "TPU v5", {}),
    "v6e": (2, "TPU v6 lite", {}),
    "tpu7x": (3, "TPU7x", {}),
}
ASK = "name one such as v5e:16x16, v5p:4x4x4, v6e:16x16, tpu7x:2x2x1, h100:8 or h200:8"
# More than any slice has (a TPU7x pod: 9,216), and than any host (HGX A100: 16), whose bandwidths a plan takes.
MOST_CHIPS, MOST_CARDS = 9216, 16
INSTALL = 'pip install "jax[tpu]"'


@dataclasses.dataclass(frozen=True)
class Topology:
    """name: as it was given. kind: as jax reports each device. shape: chips along each axis of a slice, or the cards of a host. slices: how
    many such slices, joined by the data center's network."""

    name: str
    kind: str
    shape: tuple[int, ...]
    slices: int

    @property
    def is_tpu(self) -> bool:
        """Whether its devices are TPUs, otherwise GPUs."""
        return self.kind.startswith("TPU")

    @property
    def count(self) -> int:
        """The number of jax devices."""
        return math.prod(self.shape) * self.slices * (2 if self.kind == "TPU7x" else 1)

    @property
    def simulated(self) -> bool:
        """Whether `devices` are CPUs in place of GPUs, since jax's CUDA plugin is not installed."""
        return not self.is_tpu and not any(find_spec(f"jax_plugins.xla_cuda{line}") for line in cards.CUDA if find_spec("jax_plugins"))

    def devices(self) -> list[jax.Device]:
        """Its devices, to compile for and not to run on: from libtpu, from jax's CUDA plugin with a description of the card or, without the
        plugin, as many CPU devices.

        Raises UserError where libtpu is missing or refuses the shape, and where this process has already started with fewer CPU devices.
        """
        if self.is_tpu:
            return self._tpus()
        return _cpus(self.count) if self.simulated else cards.devices(self.kind, self.count)

    def _tpus(self) -> list[jax.Device]:
        if not find_spec("libtpu"):
            raise UserError("libtpu, the compiler of TPUs, is not installed", f"--topology {self.name}", f"install it with: {INSTALL}")
        options = dict(TPUS[self.name.partition(":")[0]][2])
        if math.prod(self.shape) == 1:
            options["chips_per_host_bounds"] = (1, 1, 1)
        if self.slices > 1:
            options["num_slices"] = self.slices
        try:
            found = topologies.get_topology_desc(platform="tpu", topology_name=self.name, **options)
        except jax.errors.JaxRuntimeError as error:
            said = str(error).partition("\n")[0]
            raise UserError(
                f"libtpu refuses it ({said})", f"--topology {self.name}", "give a shape that its chips have, such as 4x4"
            ) from error
        return list(found.devices)


def parse(text: str, slices: int = 1) -> Topology:
    """The topology that `text` names, `slices` times. Raises UserError for an unknown name, an invalid shape, and slices of GPUs."""
    where = f"--topology {text}"
    name, _, shape = text.partition(":")
    sizes = tuple(int(size) for size in shape.split("x")) if re.fullmatch(r"[1-9]\d{0,4}(x[1-9]\d{0,4})*", shape) else ()
    if slices < 1:
        raise UserError(f"{slices} slices", "--slices", "give 1 or more")
    if name in TPUS:
        axes, kind, _ = TPUS[name]
        if len(sizes) != axes:
            example = "x".join(["4"] * axes)
            raise UserError(f"the shape of a {name} slice has {axes} sizes", where, f"write it as {name}:{example}")
        if (chips := math.prod(sizes)) > MOST_CHIPS:
            raise UserError(
                f"{chips:,} chips, and no slice has more than {MOST_CHIPS:,}", where, "give the shape of one slice, and --slices"
            )
        return Topology(text, kind, sizes, slices)
    if name in cards.CARDS:
        if len(sizes) != 1:
            raise UserError("a host has a number of cards", where, f"write it as {name}:8")
        if sizes[0] > MOST_CARDS:
            raise UserError(f"no host has more than {MOST_CARDS} cards", where, f"write it as {name}:8: one host is planned")
        if slices > 1:
            raise UserError("GPUs have no slices", "--slices", "leave it out: one host is planned")
        return Topology(text, cards.CARDS[name].kind, sizes, 1)
    raise UserError(f"no such accelerator; known are {', '.join((*TPUS, *cards.CARDS))}", where, ASK)


def _cpus(count: int) -> list[jax.Device]:
    if "xla_force_host_platform_device_count" not in os.environ.get("XLA_FLAGS", ""):
        with contextlib.suppress(RuntimeError):  # jax has started, and has as many as it has
            jax.config.update("jax_num_cpu_devices", count)
    if jax.device_count() < count:
        raise UserError(f"this process has {jax.device_count()} CPU devices", "--topology", f"name at most {jax.device_count()} cards")
    return jax.devices()[:count]
