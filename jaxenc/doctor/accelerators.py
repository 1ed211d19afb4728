"""The accelerators of this machine as Linux shows them, without asking JAX."""

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path

NVIDIA, GOOGLE = "0x10de", "0x1ae0"
DISPLAY = "0x03"  # first digits of the PCI class of a graphics card; a card's sound and USB functions have others
# PCI device ids of TPUs, as jax's own hardware_utils.py lists them: v3, v4, v5p, v5e, v6e, TPU7x.
TPUS = ("0x0027", "0x0056", "0x005e", "0x0062", "0x0063", "0x006f", "0x0076")


@dataclasses.dataclass(frozen=True)
class Present:
    """Accelerators that this process may open (device files), and those on the PCI bus, which a container may see without having them."""

    nvidia: int
    nvidia_on_bus: int
    tpu: int
    tpu_on_bus: int


def present(root: Path) -> Present:
    """What there is. root: of the file system."""
    bus = list(_pci(root))
    nvidia_on_bus = sum(vendor == NVIDIA and kind.startswith(DISPLAY) for vendor, _, kind in bus)
    tpu_on_bus = sum(vendor == GOOGLE and device in TPUS for vendor, device, _ in bus)
    dev = root / "dev"
    # /dev/dxg is the GPU of WSL 2. Since v5p a TPU is a group under /dev/vfio, as any device may be that a virtual machine gets.
    nvidia = _count(dev, r"nvidia\d+") or int((dev / "dxg").exists())
    tpu = _count(dev, r"accel\d+") or min(_count(dev / "vfio", r"\d+"), tpu_on_bus)
    return Present(nvidia, nvidia_on_bus, tpu, tpu_on_bus)


def _count(folder: Path, pattern: str) -> int:
    try:
        return sum(bool(re.fullmatch(pattern, path.name)) for path in folder.iterdir())
    except OSError:
        return 0


def _pci(root: Path) -> Iterator[tuple[str, str, str]]:
    """(vendor, device, class) of everything on the PCI bus."""
    for folder in (root / "sys/bus/pci/devices").glob("*"):
        try:
            yield tuple((folder / name).read_text().strip() for name in ("vendor", "device", "class"))
        except OSError:
            continue
