"""XLNet's two streams against transformers' XLNetLMHeadModel: any order, memory, types, padding, both directions.

Collected where torch and transformers are installed, as test_live.py.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxenc.layers.heads import LmHead
from jaxenc.models.xlnet import Xlnet
from jaxenc.tree import Tree
from tests import tiny
from tests.parity import xlnet

BOUND = 1e-5


@pytest.mark.parametrize("name", xlnet.SETTINGS)
def test_streams_logits_memory_and_gradients(name: str) -> None:
    """<= 1e-5 in all layers of both streams, logits and new memory, of the loss, and of all gradients as design.md says."""
    s = xlnet.SETTINGS[name]
    model, given = xlnet.build(s), xlnet.rows(s)
    params, (*inputs, query) = xlnet.weights(model), xlnet.ours(s, given)
    network, head = Xlnet(xlnet.config(s), tiny.execution()), LmHead(xlnet.VOCAB, tiny.execution())

    def loss(params: Tree) -> tuple[jax.Array, dict[str, jax.Array]]:
        found = network.apply({"params": params}, *inputs, query, None, all_layers=True)
        out = {"content": found.content, "query": found.query, "loss": jnp.sum(found.content[-1] * given.weight)}
        last = found.content if query is None else found.query
        out["logits"] = head.apply({"params": params["lm"]}, last[-1], params["embeddings"]["token"]["table"])[..., : xlnet.VOCAB]
        if query is not None:
            chances = jax.nn.log_softmax(out["logits"])
            out["loss"] -= jnp.mean(jnp.take_along_axis(chances, given.labels[..., None], axis=-1))
        memory = jnp.concatenate([given.memory, found.inputs[:, :, : s.length - 1]], axis=2)
        return out["loss"], out | {"memory": memory[:, :, -s.memory - 2 :]}

    (_, got), gradients = jax.jit(jax.value_and_grad(loss, has_aux=True))(params)
    wanted, slopes = xlnet.theirs(s, model, given)
    for part, value in wanted.items():
        np.testing.assert_allclose(got[part], value, rtol=BOUND, atol=BOUND, err_msg=part)
    tiny.assert_close(gradients, slopes, BOUND)
