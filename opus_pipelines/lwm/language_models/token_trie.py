"""Which token may come next, so that a language model writes names of the catalogue and nothing else.

A sequence is names, each with a separator after its tokens, and END. Each name is written at most once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass
class _Node:
    """A place in the trie: the tokens that may follow, and the names that end here."""

    after: "dict[int, _Node]" = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    below: set[str] = field(default_factory=set)


class TokenTrie:
    """The names of a catalogue as paths of tokens."""

    def __init__(self, names: Mapping[str, Sequence[int]], end: int) -> None:
        """Take the tokens of each name, its separator included, and the token that ends a sequence.

        Of names with the same tokens, or of which one begins with all tokens of the other, both can be written: the
        first is taken where the tokens of the shorter one end, and the next one when it is there already.
        """
        self.end, self._root = end, _Node()
        for name, tokens in names.items():
            node = self._root
            node.below.add(name)
            for token in tokens:
                node = node.after.setdefault(token, _Node())
                node.below.add(name)
            node.names.append(name)

    def allowed(self, written: Sequence[int]) -> list[int]:
        """Return the tokens that may follow: inside a name its next ones, after a name all that are left, and END."""
        node, done = self._walk(written)
        used = set(done)
        tokens = sorted(token for token, child in node.after.items() if child.below - used)
        if node is self._root and (done or not tokens):
            tokens.append(self.end)
        return tokens or [self.end]

    def names(self, written: Sequence[int]) -> list[str]:
        """Return the names that are written whole."""
        return self._walk(written)[1]

    def _walk(self, written: Sequence[int]) -> tuple[_Node, list[str]]:
        node, done = self._root, list[str]()
        for token in written:
            if token == self.end and node is self._root:
                break
            child = node.after.get(token)
            if child is None:
                break
            left = [name for name in child.names if name not in done]
            if left:
                done.append(left[0])
                child = self._root
            node = child
        return node, done
