import pytest

from jaxenc.errors import UserError
from jaxenc.optim.optimizer import OptimConfig


@pytest.mark.parametrize(
    "field, value, words",
    [
        ("name", "adam", "'adam'; use adamw or lamb or adagrad"),
        ("schedule", "cubic", "'cubic'; use linear or square_root or cosine or constant"),
        ("origin", "zero", "'zero'; use warmup_end or step_zero"),
        ("epsilon_added", "inside", "'inside'; use after_correction or before_correction"),
        ("lr", -1e-4, "-0.0001; it is at least 0"),
        ("warmup", -1, "-1; it is at least 0"),
        ("clip", -1.0, "-1.0; it is at least 0"),
        ("weight_decay", -0.1, "-0.1; it is at least 0"),
        ("beta2", 1.0, "1.0; use a number between 0 and 1"),
        ("epsilon", 0.0, "0.0; it takes a positive number"),
        ("accumulator", 0.0, "0.0; it takes a positive number"),
    ],
)
def test_a_setting_that_cannot_be_is_one_line(field: str, value: object, words: str) -> None:
    with pytest.raises(UserError, match=f"optim.{field} is {words}"):
        OptimConfig(**{field: value})
