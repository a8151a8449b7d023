#!/usr/bin/env python3
"""Measures a trained tagger of sentences beside the rules that read them: does a sentence state a rule, and its role.

    .venv/bin/python benchmarks/sentence_tagger.py

The tagger is a logistic regression of the sentence's vector. Rules: it learns from the tuning part of
tests/intakes/requirements/procedures, its penalty chosen by cross-validation over procedures, and answers the two
held-out parts, beside the reader of rules (`benchmarks/rules.py`). Sentences whose rules are all optional are left out.
Roles: input, output or process context of the sentences in the sample's intakes, one contract held out at a time; there
the folder of a document tells the role. Intervals: 95 %, bootstrap over procedures; over contracts there are too few.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Sequence

import numpy as np
from rules import read_procedure, rows_of  # beside this file
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, cross_val_predict

from opus_pipelines.intakes.elements import Element
from opus_pipelines.intakes.requirements.rules import sentences_of
from opus_pipelines.language.embedding.encoder import Encoder
from opus_pipelines.quality.sample.sources import all_contracts

PENALTIES = (0.1, 1.0, 10.0, 100.0)
ROLES = {"input": "input", "output": "output", "process": "process"}


def main() -> int:
    """Print both tables."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    encoder = Encoder()
    _rules(encoder)
    _roles(encoder)
    return 0


def _rules(encoder: Encoder) -> None:
    texts, labels, _, procedures = _labelled("tuning")
    vectors = encoder.encode(texts)
    worth = {}
    for penalty in PENALTIES:
        split = GroupKFold(5).split(vectors, labels, procedures)
        tagged = cross_val_predict(_model(penalty), vectors, labels, cv=list(split))
        worth[penalty] = _scores(labels, tagged)[2]
    best = max(worth, key=lambda p: worth[p])
    tagger = _model(best).fit(vectors, labels)
    print(f"rules: C = {best}, F1 on the tuning part by cross-validation {worth[best]:.3f}")
    for part in ("heldout", "second"):
        texts, labels, read, procedures = _labelled(part)
        tagged = tagger.predict(encoder.encode(texts)).astype(bool)
        print(
            f"{part}: {len(texts)} sentences, {labels.sum()} with a rule; precision, recall, F1; F1 less the reader's"
        )
        rows = {"reader": read, "tagger": tagged, "either": read | tagged, "both": read & tagged}
        for name, said in rows.items():
            less = (
                ""
                if name == "reader"
                else "   {:+.3f} [{:+.3f}, {:+.3f}]".format(*_difference(labels, said, read, procedures))
            )
            print(f"  {name:8}" + "".join(f"{v:8.3f}" for v in _scores(labels, said)) + less)


def _labelled(part: str) -> tuple[list[str], np.ndarray, np.ndarray, list[str]]:
    """The sentences, whether they state a rule, whether the reader reads one, and their procedures."""
    texts, labels, read, procedures = [], [], [], []
    rows = rows_of(part)
    for procedure in dict.fromkeys(row["procedure"] for row in rows):
        own = [row for row in rows if row["procedure"] == procedure]
        for row, said in zip(own, read_procedure([r["sentence"] for r in own], own[0]["style"]), strict=True):
            if row["rules"] and all(rule.get("optional") for rule in row["rules"]):
                continue
            texts.append(row["sentence"])
            labels.append(bool(row["rules"]))
            read.append(bool(said))
            procedures.append(procedure)
    return texts, np.array(labels), np.array(read), procedures


def _roles(encoder: Encoder) -> None:
    texts, roles, contracts = [], [], []
    for files in all_contracts():
        for path, text in files.texts.items():
            role = path.split("/")[-2] if "/" in path else ""
            if role in ROLES:
                element = Element(path, role, "text", path, "text/plain", text, 0, "", None)
                own = [s.text for s in sentences_of(element) if s.shape in ("prose", "item")]
                texts += own
                roles += [role] * len(own)
                contracts += [files.folder] * len(own)
    vectors, labels, groups = encoder.encode(texts), np.array(roles), np.array(contracts)
    right = {}
    for penalty in PENALTIES:
        tagged = np.empty(len(labels), labels.dtype)
        for contract in sorted(set(contracts)):
            held = groups == contract
            tagged[held] = _model(penalty).fit(vectors[~held], labels[~held]).predict(vectors[held])
        right[penalty] = float((tagged == labels).mean())
    most = Counter(roles).most_common(1)[0]
    print(f"roles: {len(texts)} sentences, one contract held out at a time; the folder tells all of them")
    print(f"  most frequent role ({most[0]}) {most[1] / len(texts):.3f}   tagger, best C {max(right.values()):.3f}")


def _model(penalty: float) -> LogisticRegression:
    return LogisticRegression(C=penalty, max_iter=2000)


def _scores(labels: np.ndarray, said: np.ndarray) -> tuple[float, float, float]:
    right = float((labels & said).sum())
    precision, recall = right / max(1, said.sum()), right / max(1, labels.sum())
    return precision, recall, 2 * right / max(1, said.sum() + labels.sum())


def _difference(
    labels: np.ndarray, said: np.ndarray, base: np.ndarray, procedures: Sequence[str]
) -> tuple[float, float, float]:
    """The difference of F1 and its interval."""
    names = sorted(set(procedures))
    counts = np.zeros((len(names), 5))
    for n, procedure in enumerate(procedures):
        row = counts[names.index(procedure)]
        row += [labels[n], said[n], labels[n] & said[n], base[n], labels[n] & base[n]]
    less = lambda c: 2 * c[..., 2] / (c[..., 0] + c[..., 1]) - 2 * c[..., 4] / (c[..., 0] + c[..., 3])
    drawn = counts[np.random.default_rng(0).integers(0, len(names), (2000, len(names)))].sum(1)
    low, high = np.percentile(less(drawn), [2.5, 97.5])
    return float(less(counts.sum(0))), float(low), float(high)


if __name__ == "__main__":
    sys.exit(main())
