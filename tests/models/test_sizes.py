"""The table of published sizes."""

from jaxenc.models import sizes


def test_all_small_models():
    assert len(set(sizes.BERT_SMALL)) == 24
    assert {sizes.BERT[name] for name in ("tiny", "mini", "small", "medium", "base")} <= set(sizes.BERT_SMALL)


def test_heads_are_64_wide_and_the_inner_layer_4_times():
    for layers, width in (*sizes.BERT_SMALL, *sizes.BERT.values()):
        config = sizes.bert(layers, width)
        assert (config.layers, config.width // config.heads, config.feed_forward) == (layers, 64, 4 * width)
    assert sizes.bert(24, 1024).heads == 16
