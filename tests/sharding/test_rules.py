import pytest
from jax.sharding import PartitionSpec as P

from jaxenc.sharding.rules import PRESETS, TABLE, spec


@pytest.mark.parametrize(
    "names, dp, fsdp, fsdp_tp",
    [
        (("embed", "mlp"), P(None, None), P("fsdp", None), P("fsdp", "tensor")),
        (("heads", "embed"), P(None, None), P(None, "fsdp"), P("tensor", "fsdp")),
        (("vocab", "table_embed"), P(None, None), P(None, "fsdp"), P("tensor", "fsdp")),
        (("norm", "embed", None), P(None, None, None), P(None, "fsdp", None), P(None, "fsdp", None)),
        (("batch", "length"), P("data", None), P(("data", "fsdp"), None), P(("data", "fsdp"), None)),
        (("norm",), P(None), P(None), P(None)),
        ((), P(), P(), P()),
    ],
)
def test_the_table_per_preset(names: tuple[str | None, ...], dp: P, fsdp: P, fsdp_tp: P) -> None:
    assert [spec(names, preset) for preset in PRESETS] == [dp, fsdp, fsdp_tp]


@pytest.mark.parametrize("preset", PRESETS)
def test_only_the_batch_is_split_under_dp_and_the_named_axes_elsewhere(preset: str) -> None:
    split = {name for name in TABLE if spec((name,), preset) != P(None)}
    assert (
        split
        == {
            "dp": {"batch"},
            "fsdp": {"batch", "embed", "table_embed"},
            "fsdp_tp": {"batch", "embed", "table_embed", "vocab", "mlp", "heads"},
        }[preset]
    )


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("names", [("mlp", "heads"), ("embed", "embed"), ("table_embed", "embed"), ("vocab", "mlp")])
def test_two_axes_on_one_mesh_axis_are_an_error_under_every_preset(names: tuple[str, ...], preset: str) -> None:
    with pytest.raises(ValueError) as error:
        spec(names, preset)
    assert str(names) in str(error.value)


def test_an_unknown_name_is_an_error_that_shows_the_array() -> None:
    with pytest.raises(ValueError, match=r"\('embed', 'mpl'\).*'mpl'"):
        spec(("embed", "mpl"), "dp")
