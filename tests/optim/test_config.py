import pytest

from jaxenc.errors import UserError
from jaxenc.optim.optimizer import OptimConfig


@pytest.mark.parametrize(
    "field, value, words",
    [
        ("name", "adam", "'adam'; use adamw or lamb or adagrad"),
        ("schedule", "cubic", "'cubic'; use linear or square_root or cosine or constant or slanted"),
        ("origin", "zero", "'zero'; use warmup_end or step_zero"),
        ("epsilon_added", "inside", "'inside'; use after_correction or before_correction"),
        ("lr", -1e-4, "-0.0001; it is at least 0"),
        ("warmup", -1, "-1; it is at least 0"),
        ("clip", -1.0, "-1.0; it is at least 0"),
        ("weight_decay", -0.1, "-0.1; it is at least 0"),
        ("beta2", 1.0, "1.0; use a number between 0 and 1"),
        ("epsilon", 0.0, "0.0; it takes a positive number"),
        ("layer_decay_of", "layers", "'layers'; use rate or gradient"),
        ("layer_decay", 0.0, "0.0; it takes a number above 0 and up to 1"),
        ("layer_decay", 2.6, "2.6; it takes a number above 0 and up to 1"),
        ("layer_decay_top", -1, "-1; it is at least 0"),
        ("slanted_ratio", 0.5, "0.5; it is at least 1"),
        ("accumulator", 0.0, "0.0; it takes a positive number"),
    ],
)
def test_a_setting_that_cannot_be_is_one_line(field: str, value: object, words: str) -> None:
    with pytest.raises(UserError, match=f"optim.{field} is {words}"):
        OptimConfig(**{field: value})


@pytest.mark.parametrize(
    "config, names",
    [
        (OptimConfig(), {"accumulator", "slanted_ratio", "layer_decay_top", "layer_decay_of", "layer_decay_exclude"}),
        (OptimConfig(layer_decay=0.8, schedule="slanted"), {"accumulator", "origin"}),
        (OptimConfig(layer_decay=0.8, weight_decay=0.0), {"accumulator", "slanted_ratio", "decay_exclude", "decay_corrected"}),
        (OptimConfig("lamb", layer_decay=0.8, weight_decay=0.0), {"accumulator", "slanted_ratio", "decay_corrected"}),
        (
            OptimConfig(layer_decay=0.8, bias_correction=False, schedule="constant"),
            {"accumulator", "slanted_ratio", "epsilon_added", "decay_corrected", "origin"},
        ),
    ],
)
def test_a_field_without_effect_is_named(config: OptimConfig, names: set[str]) -> None:
    assert set(config.unused) == {f"optim.{name}" for name in names}
