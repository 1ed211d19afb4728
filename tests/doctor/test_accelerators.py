"""Accelerators of a machine, from a made-up file system."""

from pathlib import Path

import pytest

from jaxenc.doctor.accelerators import Present, present


def machine(root: Path, files: list[str], bus: list[tuple[str, str, str]]) -> Path:
    for name in files:
        (root / "dev" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "dev" / name).touch()
    for number, facts in enumerate(bus):
        place = root / f"sys/bus/pci/devices/0000:00:{number:02x}.0"
        place.mkdir(parents=True)
        for name, value in zip(("vendor", "device", "class"), facts, strict=True):
            (place / name).write_text(f"{value}\n")
    return root


H200, SOUND = ("0x10de", "0x2335", "0x030200"), ("0x10de", "0x22ba", "0x040300")
V5E, V6E, OTHER = ("0x1ae0", "0x0063", "0x088000"), ("0x1ae0", "0x006f", "0x088000"), ("0x1ae0", "0x0042", "0x020000")


@pytest.mark.parametrize(
    "files, bus, expected",
    [
        ([], [], Present(0, 0, 0, 0)),
        (["nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm", "nvidia-caps/nvidia-cap1"], [H200, H200, SOUND], Present(2, 2, 0, 0)),
        (["nvidia3"], [H200] * 8, Present(1, 8, 0, 0)),
        ([], [H200], Present(0, 1, 0, 0)),
        (["dxg"], [], Present(1, 0, 0, 0)),
        (["accel0", "accel1", "accel2", "accel3"], [V5E] * 4, Present(0, 0, 4, 4)),
        (["vfio/vfio", "vfio/0", "vfio/1"], [V6E, V6E, OTHER], Present(0, 0, 2, 2)),
        (["vfio/vfio", "vfio/7"], [H200], Present(0, 1, 0, 0)),
        (["accel/accel0"], [], Present(0, 0, 0, 0)),
        ([], [V5E], Present(0, 0, 0, 1)),
    ],
    ids=["none", "two GPUs", "one of eight GPUs", "no driver", "WSL", "v5e", "v6e", "a GPU of a guest", "an NPU", "no TPU given"],
)
def test_accelerators_are_counted_in_dev_and_on_the_pci_bus(
    files: list[str], bus: list[tuple[str, str, str]], expected: Present, tmp_path: Path
) -> None:
    assert present(machine(tmp_path, files, bus)) == expected
