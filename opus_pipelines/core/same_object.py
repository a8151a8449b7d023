"""An object as the key of a cache, where its content is too large to compare or cannot be hashed."""

from typing import Generic, TypeVar

T = TypeVar("T")


class SameObject(Generic[T]):
    """A key that equals only a key of the same object. It keeps the object alive, so that no other has its identity."""

    def __init__(self, value: T) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SameObject) and other.value is self.value
