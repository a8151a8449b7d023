"""A causal language model of some 30,000 random weights, with a tokenizer of bytes."""

import warnings
from pathlib import Path


def write_tiny_model(folder: Path, seed: int = 0) -> Path:
    """Write model and tokenizer into a folder; the same seed gives the same weights."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
    from transformers.utils import logging

    logging.disable_progress_bar()
    bytes_only = Tokenizer(models.BPE())
    bytes_only.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bytes_only.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=320, special_tokens=["<s>", "</s>"], initial_alphabet=alphabet, show_progress=False
    )
    bytes_only.train_from_iterator(["Check invoice Pay invoice Receive invoice step: then goal: input:"], trainer)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tokenizer = PreTrainedTokenizerFast(tokenizer_object=bytes_only, bos_token="<s>", eos_token="</s>")
        tokenizer.save_pretrained(folder)
        torch.manual_seed(seed)
        config = LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=2,
            max_position_embeddings=4096,
            initializer_range=0.3,  # the head is not trained: with smaller weights no adapter could move its choice
            bos_token_id=0,
            eos_token_id=1,
        )
        LlamaForCausalLM(config).save_pretrained(folder)
    return folder
