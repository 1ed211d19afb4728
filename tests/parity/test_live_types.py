"""What is exported with no, one or two token types opens in transformers, whole, and computes the same."""

from pathlib import Path

import pytest
import transformers

from jaxenc.convert import hf, parity
from tests.convert.test_types import with_types
from tests.selection import thinned

CASES = [(types, name) for types in (0, 1, 2) for name in ("BertForMaskedLM", "RobertaForMaskedLM", "ElectraForPreTraining")]


@pytest.mark.parametrize("types, architecture", thinned(CASES, (0, "RobertaForMaskedLM"), (2, "ElectraForPreTraining")))
def test_it_opens_and_is_the_same(architecture: str, types: int, tmp_path: Path) -> None:
    """No tensor is missing, left over or of another shape; all outputs within the bounds of `convert --check`."""
    ours = with_types(architecture, types, tmp_path / "theirs")
    hf.save(tmp_path / "out", ours)
    _, told = getattr(transformers, architecture).from_pretrained(tmp_path / "out", local_files_only=True, output_loading_info=True)
    assert not any(told.values()), told
    found = parity.compare(ours, tmp_path / "out")
    assert found and all(difference.within for difference in found), parity.table(found)
