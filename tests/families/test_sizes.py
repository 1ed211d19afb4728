"""The table of published sizes."""

from jaxenc.families.bert import sizes


def test_all_small_models():
    assert len(set(sizes.BERT_SMALL)) == 24
    assert {sizes.BERT[name] for name in ("tiny", "mini", "small", "medium", "base")} <= set(sizes.BERT_SMALL)


def test_heads_are_64_wide_and_the_inner_layer_4_times():
    for layers, width in (*sizes.BERT_SMALL, *sizes.BERT.values()):
        config = sizes.bert(layers, width)
        assert (config.layers, config.width // config.heads, config.feed_forward) == (layers, 64, 4 * width)
    assert sizes.bert(24, 1024).heads == 16


def test_roberta_is_bert_with_its_own_numbers():
    """What config.json of the published models says: 50,265 ids, 514 rows of positions, one type, eps 1e-5, erf, deviation 0.02."""
    for layers, width in sizes.ROBERTA.values():
        config, bert = sizes.roberta(layers, width), sizes.bert(layers, width)
        assert (config.layers, config.width, config.heads, config.feed_forward) == (layers, width, bert.heads, bert.feed_forward)
        assert (config.vocab_size, config.types, config.positions + config.first_position) == (50265, 1, 514)
        assert (config.activation, config.norm_epsilon, config.init, config.init_scale) == ("gelu_erf", 1e-5, "normal", 0.02)
        assert (config.dropout, config.attention_dropout) == (0.1, 0.1)
