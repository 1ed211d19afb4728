"""Which documents are held out: those whose hash is below a limit. A document is in the same split in every large corpus."""

import hashlib
import itertools
import math
from collections.abc import Callable, Iterator, Sequence

from jaxenc.data.readers import Document

SHARE = 0.01  # the default share of documents
HASHES = 1 << 64
LEAST = 20  # held-out documents of a small corpus, but no more than one in MOST
MOST = 10
SCANNED = 100_000  # most documents that are read ahead to know whether a corpus is small
KEPT = 1 << 23  # bytes of them that stay in memory; if there are more, they are read twice
PREDICTED = 0.15  # share of the tokens that a masked model predicts
# Standard deviation of the loss of one token, in nats: 2.47 for word frequencies on 96,000 tokens of English (8,000 pieces of WordPiece).
SPREAD = 2.5
ERROR = 0.05  # nats: with a larger standard error, the losses of two recipes cannot be told apart


def standard_error(tokens: int, predicted: float = PREDICTED) -> float:
    """Of a held-out loss in nats: SPREAD over the square root of the number of predictions. tokens: of the split; predicted: the share of
    them that is predicted. Neighbouring tokens are not independent, so it is a lower bound."""
    return SPREAD / math.sqrt(max(predicted * tokens, 1))


def enough(predicted: float = PREDICTED) -> int:
    """Tokens whose loss has a standard error of ERROR, in whole thousands."""
    return math.ceil((SPREAD / ERROR) ** 2 / predicted / 1000) * 1000


def too_few(tokens: int, predicted: float = PREDICTED) -> str:
    """The warning for a held-out split whose loss has a standard error above ERROR; '' for a larger one."""
    if standard_error(tokens, predicted) <= ERROR:
        return ""
    share = f", {predicted:.0%} of them predicted," if predicted < 1 else ""
    error = f"has a standard error of at least {standard_error(tokens, predicted):.2f} nats"
    return f"few tokens are held out: a loss on {tokens:,}{share} {error}; {ERROR} needs {enough(predicted):,} tokens"


def hash_of(text: bytes) -> int:
    """The hash of a document, 0 to 2^64 - 1: BLAKE2b of 8 bytes, little-endian. text: its lines in UTF-8 with line feeds between."""
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")


def text_of(lines: Sequence[str]) -> bytes:
    """A document as `hash_of` takes it."""
    return "\n".join(lines).encode()


def limit(share: float, hashes: Sequence[int]) -> int:
    """Documents with a hash below this are held out: `share` of all hashes, or in a small corpus the LEAST smallest ones.

    hashes: of all documents of the corpus, or of a beginning of it in which `share` holds out LEAST documents; then `share` alone decides.
    In a small corpus at most one document in MOST is added; equal documents stay together. A share of 0 holds nothing out.
    """
    plain = math.ceil(share * HASHES)
    ranked = sorted(hashes)
    wanted = min(LEAST, len(ranked) // MOST)
    while 0 < wanted < len(ranked) and ranked[wanted - 1] == ranked[wanted]:
        wanted -= 1
    return max(plain, ranked[wanted - 1] + 1) if share and wanted else plain


def scanned(read: Callable[[], Iterator[Document]], share: float) -> tuple[int, Iterator[Document]]:
    """(`limit` of a corpus, its documents as `read` returns them). Reads ahead until `share` holds out LEAST documents, at most SCANNED.

    read: starts reading at the first document. It is called twice if what was read ahead is longer than KEPT.
    """
    found, plain = read(), math.ceil(share * HASHES)
    if not share:
        return plain, found
    hashes: list[int] = []
    kept: list[Document] = []
    below = size = 0
    for document in found:
        if size <= KEPT:
            kept.append(document)
        if document.lines:
            text = text_of(document.lines)
            size += len(text)
            hashes.append(hash_of(text))
            below += hashes[-1] < plain
            if size > KEPT:
                kept.clear()
        if below >= LEAST or len(hashes) >= SCANNED:
            break
    small = below < LEAST and len(hashes) < SCANNED
    rest = itertools.chain(kept, found) if size <= KEPT else read()
    return limit(share, hashes) if small else plain, rest
