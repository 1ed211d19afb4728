"""Tokens per second and model FLOPs utilisation."""

PEAKS = {  # dense bfloat16 FLOP/s a chip, from the makers' data sheets
    "NVIDIA A100": 312e12,
    "NVIDIA H100": 989e12,
    "NVIDIA H200": 989e12,
    "TPU v4": 275e12,
    "TPU v5 lite": 197e12,
    "TPU v5p": 459e12,
    "TPU v6 lite": 918e12,
}


def peak_flops(device_kind: str) -> float:
    """Dense bfloat16 FLOP/s of one device by its kind as jax names it; 0 where it is not known."""
    return next((peak for name, peak in PEAKS.items() if device_kind.startswith(name)), 0.0)


def utilisation(flops_per_row: float, rows_per_second: float, device_kind: str, devices: int) -> float:
    """Model FLOPs (forward and backward, nothing computed twice) by the devices' peak; 0 where the peak is not known."""
    peak = peak_flops(device_kind) * devices
    return flops_per_row * rows_per_second / peak if peak else 0.0
