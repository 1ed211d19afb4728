"""What the messages of errors hold."""

from jaxenc.errors import LONGEST, Diverged, UserError, no_memory


def test_a_message_is_one_line_without_codes_of_the_terminal() -> None:
    assert str(UserError("a\nb\x1b[2J\u2028 \ud800")) == r"a\nb\x1b[2J\u2028 \ud800"
    assert len(str(UserError("x" * 10**6))) <= LONGEST


def test_a_message_says_where_what_and_the_fix() -> None:
    assert str(UserError("blank line", "vocab.txt:3", "remove it")) == "vocab.txt:3: blank line; remove it"
    assert str(UserError("no text", fix="name a file")) == "no text; name a file"


def test_a_divergence_says_how_to_go_on() -> None:
    assert str(Diverged("step 4")) == "step 4: lower optim.lr, in a new work directory with --continue-from this one"


def test_only_a_lack_of_memory_is_one() -> None:
    lacking = RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 8 bytes.\nmore")
    assert no_memory(lacking) == "the device does not have enough memory (Out of memory allocating 8 bytes)"
    assert no_memory(RuntimeError("INTERNAL: RESOURCE_EXHAUSTED")) == ""
