"""A sentence encoder of a few thousand random weights that knows a few words, by default the pointer model's."""

from collections.abc import Sequence
from pathlib import Path

from tests.lwm.pointer.pointer_fixtures import WORDS


def write_tiny_encoder(folder: Path, known_words: Sequence[str] = tuple(WORDS)) -> Path:
    """Write model and tokenizer into a folder."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast
    from transformers.utils import logging

    logging.disable_progress_bar()
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "and", *known_words]
    known = Tokenizer(models.WordLevel({word: n for n, word in enumerate(words)}, unk_token="[UNK]"))
    known.pre_tokenizer = pre_tokenizers.Whitespace()
    known.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    PreTrainedTokenizerFast(
        tokenizer_object=known, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]"
    ).save_pretrained(folder)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(words),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=4,
        num_attention_heads=2,
        max_position_embeddings=64,
        hidden_dropout_prob=0.0,
        initializer_range=0.3,  # as trained models have; with smaller weights all tokens look alike
    )
    BertModel(config).save_pretrained(folder)
    return folder
