"""Model FLOPs utilisation."""

from jaxenc.sharding import chips


def utilisation(flops_per_row: float, rows_per_second: float, device_kind: str, devices: int) -> float:
    """Model FLOPs (forward and backward, nothing computed twice) by the devices' peak; 0 where the peak is not known."""
    peak = chips.of_kind(device_kind).flops * devices
    return flops_per_row * rows_per_second / peak if peak else 0.0
