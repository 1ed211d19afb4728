"""Published sizes of ELECTRA (Clark et al. 2020)."""

from jaxenc.families.electra.model import ElectraConfig

# name: (layers, width, width of the tables, width of the generator)
ELECTRA = {"small": (12, 256, 128, 64), "base": (12, 768, 768, 256), "large": (24, 1024, 1024, 256)}


def electra(layers: int, width: int, embedding: int, generator_width: int) -> ElectraConfig:
    """An ELECTRA of google-research/electra (configure_pretraining.py, util/training_utils.py): both networks equally deep, an inner
    width of 4 · width; the discriminator's heads are 64 wide as the generator's."""
    return ElectraConfig(
        width=width,
        layers=layers,
        heads=width // 64,
        feed_forward=4 * width,
        embedding=embedding,
        generator_width=generator_width,
        generator_layers=layers,
        generator_heads=generator_width // 64,
        generator_feed_forward=4 * generator_width,
    )
