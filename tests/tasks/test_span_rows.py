"""Which tokens of an answer are trained on, where no blanks stand between words."""

import pytest

from jaxenc.data.tokenizers import wordpiece
from jaxenc.families.bert.model import BertConfig
from jaxenc.tasks.framing import Framing
from jaxenc.tasks.span_rows import answer_span
from jaxenc.tasks.squad_files import Question


@pytest.mark.parametrize(
    "context, answer, start",
    [
        ("北京是首都，他住在北京。", "北京", 9),  # the second of two
        ("ฉันอยู่กรุงเทพมานาน", "กรุงเทพ", 7),  # within a run of letters
        ("ရန်ကုန်မြို့တွင်", "မြို့", 7),
    ],
    ids=("Chinese", "Thai", "Burmese"),
)
def test_the_answer_is_where_the_file_says(context: str, answer: str, start: int) -> None:
    """With a piece for every character, the tokens are exactly those of the answer, and not its first occurrence or the whole run."""
    assert context[start : start + len(answer)] == answer
    tool = wordpiece.train([context], 80)
    ((ids, offsets),) = tool.encode_offsets([context])
    framing = Framing(tool, BertConfig(positions=64), 64)
    first, last = answer_span(Question("1", "f:1", "?", context, ((answer, start),), False), ids, offsets, framing)
    assert (offsets[first][0], offsets[last][1]) == (start, start + len(answer))
