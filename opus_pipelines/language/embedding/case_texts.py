"""The texts of the cases of history that are embedded: the request of each, and its context."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow.parquet as pq

from opus_pipelines.language.embedding.passages import passages, stretches, words_of


def case_texts(sources: Iterable[Path]) -> Iterator[tuple[str, str | None, str | None, str | None]]:
    """Yields implementation id, title, description and process context of each case in folders of implementations."""
    columns = ["implementation_id", "title", "description", "process_context"]
    for folder in sources:
        for file in sorted(folder.glob("*.parquet")):
            for batch in pq.ParquetFile(file).iter_batches(batch_size=4_096, columns=columns):
                yield from zip(*(batch[name].to_pylist() for name in columns), strict=True)


def request_text(title: str | None, description: str | None) -> str:
    """Returns the request of a case as one text; it is empty when history has none."""
    return ". ".join(part.strip() for part in (title, description) if part and part.strip())


def case_passages(sources: Iterable[Path], max_tokens: int) -> set[str]:
    """Returns every passage that the vectors of cases are made of."""
    words = words_of(max_tokens)
    found: set[str] = set()
    for _, title, description, context in case_texts(sources):
        found.update(stretches(request_text(title, description), words))
        found.update(passages(context or "", words))
    return found


def contexts_of(sources: Iterable[Path]) -> dict[str, str]:
    """Returns the process context of each case in folders of implementations that has one, by id."""
    return {case: context for case, _, _, context in case_texts(sources) if context and context.strip()}


def requests_of(sources: Iterable[Path]) -> dict[str, str]:
    """Returns the request of each case in folders of implementations, by id; without a request, its context."""
    return {
        case: text
        for case, title, description, context in case_texts(sources)
        if (text := request_text(title, description) or (context or "").strip())
    }
