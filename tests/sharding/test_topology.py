"""Topologies by name: their devices, and what is refused before libtpu starts."""

import importlib.util
import math
import os
import subprocess
import sys

import jax
import pytest

from jaxenc.errors import UserError
from jaxenc.processes import deviceless
from jaxenc.sharding import cards, topology
from jaxenc.sharding.topology import TPUS, Topology, parse

TPU = pytest.mark.skipif(not importlib.util.find_spec("libtpu"), reason='libtpu is not installed: pip install "jax[tpu]"')


@pytest.mark.parametrize(
    ("text", "slices", "kind", "count"),
    [
        ("v5e:16x16", 1, "TPU v5 lite", 256),
        ("v5p:4x4x4", 1, "TPU v5", 64),
        ("v6e:16x16", 2, "TPU v6 lite", 512),
        ("v4:2x2x1", 1, "TPU v4", 4),
        ("tpu7x:2x2x1", 1, "TPU7x", 8),
        ("h100:8", 1, "NVIDIA H100 80GB HBM3", 8),
        ("h200:2", 1, "NVIDIA H200", 2),
    ],
)
def test_a_topology_is_read_from_its_name(text: str, slices: int, kind: str, count: int) -> None:
    found = parse(text, slices)
    assert (found.kind, found.count, found.is_tpu) == (kind, count, kind.startswith("TPU"))


@pytest.mark.parametrize(
    ("text", "slices", "words"),
    [
        ("v9:2x2", 1, "--topology v9:2x2: no such accelerator; known are v4, v5e, v5p, v6e, tpu7x, a100, h100, h200"),
        ("v5litepod-16", 1, "no such accelerator"),
        ("v5e", 1, "the shape of a v5e slice has 2 sizes; write it as v5e:4x4"),
        ("v5e:0x4", 1, "has 2 sizes"),
        ("v5e:4x4x4", 1, "has 2 sizes"),
        ("v5p:4x4", 1, "the shape of a v5p slice has 3 sizes; write it as v5p:4x4x4"),
        ("v5e:4x", 1, "has 2 sizes"),
        ("h100:2x4", 1, "a host has a number of cards; write it as h100:8"),
        ("h100:8", 2, "--slices: GPUs have no slices; leave it out"),
        ("v5e:4x4", 0, "--slices: 0 slices; give 1 or more"),
        ("v5e:99999x99999", 1, "9,999,800,001 chips, and no slice has more than 9,216; give the shape of one slice, and --slices"),
        ("h100:3000", 1, "no host has more than 16 cards; write it as h100:8"),
    ],
)
def test_an_invalid_topology_is_refused_with_advice(text: str, slices: int, words: str) -> None:
    with pytest.raises(UserError) as error:
        parse(text, slices)
    assert words in str(error.value) and "\n" not in str(error.value)


def test_without_libtpu_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topology, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r'^--topology v5e:2x2: libtpu, .* is not installed; install it with: pip install "jax\[tpu\]"$'):
        parse("v5e:2x2").devices()


def test_without_jaxs_plugin_cpu_devices_take_the_place_of_cards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topology, "find_spec", lambda name: None)
    found = parse("h100:4")
    assert found.simulated and found.devices() == jax.devices()[:4]
    with pytest.raises(UserError, match="8 CPU devices; name at most 8 cards"):
        parse("h100:9").devices()
    monkeypatch.setattr(topology, "find_spec", lambda name: name)
    assert not parse("h100:4").simulated and not parse("v5e:2x2").simulated


def test_a_card_is_described_by_its_own_numbers() -> None:
    """What XLA reads: an H200 has an H100's cores and its own memory; brackets are closed."""
    h100, h200, a100 = (cards.description(cards.CARDS[name]) for name in ("h100", "h200", "a100"))
    assert "device_memory_size: 141000000000 " in h200 and "memory_bandwidth: 4800000000000 " in h200 and "NVIDIA H200" in h200
    assert "core_count: 132 " in h100 and "major: 9 minor: 0" in h100 and "device_memory_size: 80000000000 " in h100
    assert "major: 8 minor: 0" in a100 and all(text.count("{") == text.count("}") for text in (h100, h200, a100))


def test_jax_still_has_the_public_names() -> None:
    """jax.experimental.topologies is public in both lines of jax; should it go, `jax.topologies` or its release notes name what follows."""
    from jax.experimental import topologies

    assert callable(topologies.get_topology_desc), "jax.experimental.topologies.get_topology_desc is gone: see jax's release notes"
    assert not hasattr(jax, "topologies"), "jax.topologies is there: use it in sharding/topology.py and sharding/cards.py"


@pytest.mark.full
@TPU
def test_libtpu_does_not_complain_of_a_machine_without_tpus() -> None:
    describe = "import sys; from jaxenc.sharding import topology; topology.parse(sys.argv[1]).devices()"
    for name in ("v5e:2x2", "v5p:4x4x4"):
        command, environment = [sys.executable, "-c", describe, name], {**os.environ, **deviceless.settings()}
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.full
@TPU
@pytest.mark.parametrize("name", TPUS)
def test_libtpu_knows_every_name(name: str) -> None:
    """As many devices, of that kind, also in two slices; one chip alone; and a shape that no slice has is one line."""
    axes, kind, _ = TPUS[name]
    shape = (2, 2, 1)[:axes]
    for slices in (1, 2):
        found = parse(f"{name}:{'x'.join(map(str, shape))}", slices)
        devices = found.devices()
        assert len(devices) == found.count and {device.device_kind for device in devices} == {kind}
    one = Topology(f"{name}:{'x'.join('1' * axes)}", kind, (1,) * axes, 1)
    assert len(one.devices()) == one.count and math.prod(one.shape) == 1
    with pytest.raises(UserError, match="libtpu refuses it"):
        parse(f"{name}:{'x'.join(['3', '3', '1'][:axes])}").devices()
