"""The table by which SentencePiece changes characters, nmt_nfkc say, in its compiled form.

It is the bytes of a trie, their number before them, and the texts that its leaves stand for, each ended by a zero. The trie is an array
of u32 (s-yata/darts-clone:include/darts.h, DoubleArrayUnit): from the unit at `a` the byte c leads to the unit at a ^ offset ^ c, if the
label of that one is c, and the leaf of a unit, if it has one, is at a ^ offset.
"""

import numpy as np

PLACE = 0x7FFFFFFF  # of a leaf: where its text begins


def check(charsmap: bytes) -> None:
    """Raises ValueError for a table by which a look-up could leave it: the library that uses it does not look. b'' is not a table."""
    if not charsmap:
        return
    size = int.from_bytes(charsmap[:4], "little")
    if len(charsmap) < 4 + size or not size or size % 4:
        raise ValueError(f"a table of characters has {len(charsmap)} bytes, and a trie of {size} in it")
    units, texts = np.frombuffer(charsmap, "<u4", size // 4, offset=4), np.frombuffer(charsmap, np.uint8, offset=4 + size)
    charsmap[4 + size :].decode()  # a UnicodeDecodeError is a ValueError
    offset, label, has_leaf = (units >> 10) << (units >> 6 & 8), units & 0x800000FF, units & 256 > 0
    begins = np.append(texts & 0xC0 != 0x80, True)  # where a character does, or the table ends
    seen, front = np.zeros(len(units), bool), offset[:1]
    while len(front):
        reached = front[:, None] ^ np.arange(256, dtype=np.uint32)
        if reached.max() >= len(units):
            raise ValueError("a table of characters leads out of its trie")
        seen[front] = True
        child = reached[label[reached] == np.arange(256)]
        child = child[label[child] > 0]  # no text has the byte 0: what is there is a leaf
        below = child ^ offset[child]
        leaves = below[has_leaf[child]]
        if (below >= len(units)).any() or (units[leaves] & PLACE > len(texts)).any() or not begins[units[leaves] & PLACE].all():
            raise ValueError("a table of characters leads out of its texts")
        front = np.unique(below[~seen[below]])
