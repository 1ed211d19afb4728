"""A dense layer, a norm, a table: what they are called and how they lie in files of torch and of TensorFlow 1."""

from collections.abc import Iterator, Mapping

from jaxenc.formats.key_map import IDENTITY, TRANSPOSE, Entry, rows

# In a table of names: theirs has no such part.
NONE = "-"
# Leaves of each kind of part: (ours, torch's, TensorFlow's), and how torch's and TensorFlow's are turned.
# google-research's own `output_weights` are [classes, width] and its kernels [in, out]; torch's weights are all [out, in].
LEAVES = {
    "dense": (("/kernel", ".weight", "/kernel", TRANSPOSE, IDENTITY), ("/bias", ".bias", "/bias", IDENTITY, IDENTITY)),
    "output": (("/kernel", ".weight", "output_weights", TRANSPOSE, TRANSPOSE), ("/bias", ".bias", "output_bias", IDENTITY, IDENTITY)),
    "kernel": (("/kernel", ".weight", "/kernel", TRANSPOSE, IDENTITY),),
    "norm": (("/scale", ".weight", "/gamma", IDENTITY, IDENTITY), ("/bias", ".bias", "/beta", IDENTITY, IDENTITY)),
    "table": (("", ".weight", "", IDENTITY, IDENTITY),),
    "vocabulary": (("", ".weight", "", IDENTITY, IDENTITY),),
    "bias": (("", "", "", IDENTITY, IDENTITY),),
}


def entries(
    kind: str, ours: str, theirs: str, vocab_size: int, tensorflow: bool, gamma: bool, copies: Mapping[str, str]
) -> Iterator[Entry]:
    """The entries of one part, `theirs` in the file and `ours` in the tree. kind: of LEAVES; `vocabulary` and `bias` have a row a token.

    tensorflow: the file is one of TensorFlow, else of torch; gamma: torch's norms are called gamma and beta, as the first files had it;
    copies: {our path: another name under which the file may hold the values}.
    """
    for leaf, torch, google, from_torch, from_google in LEAVES[kind]:
        if kind == "norm" and gamma:
            torch = google.replace("/", ".")
        suffix, transform = (google, from_google) if tensorflow else (torch, from_torch)
        if kind in ("vocabulary", "bias"):
            transform = transform.then(rows(vocab_size))
        copy = copies.get(ours + leaf)
        yield Entry(theirs + suffix, ours + leaf, transform, (copy,) if copy else ())
