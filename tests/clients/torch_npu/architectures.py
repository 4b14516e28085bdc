"""Language models of the package `transformers` on the emulated device against the CPU: float32, small, with random weights.

    understudy run python -m tests.clients.torch_npu.architectures [--kind causal masked sequence] [name …]

Every architecture whose configuration can be made small runs forward and backward on a padded batch; causal models generate
tokens, too. Outcomes:

    equal      loss and logits within 1e-3, gradients within 5e-3 of the largest, the same tokens
    differs    some are not
    refused    the device or the adapter raised; the first line is shown
    skipped    the configuration does not become small in this way, or the CPU does not run it either
"""

from __future__ import annotations

import argparse
import collections
import copy
import os
import re
import warnings

LARGEST = 20_000_000  # weights
SIZES = {
    99: "vocab_size",
    64: "intermediate_size ffn_dim d_ff d_inner n_inner encoder_ffn_dim decoder_ffn_dim max_position_embeddings n_positions "
        "n_ctx context_length",
    32: "hidden_size d_model n_embd dim embedding_size attention_hidden_size moe_intermediate_size",
    16: "q_lora_rank kv_lora_rank",
    8: "d_kv head_dim qk_rope_head_dim qk_nope_head_dim v_head_dim rotary_dim state_size",
    4: "num_attention_heads n_head n_heads num_heads encoder_attention_heads decoder_attention_heads num_local_experts "
       "num_experts n_routed_experts sliding_window time_step_rank",
    2: "num_hidden_layers n_layer n_layers num_layers encoder_layers decoder_layers num_decoder_layers num_key_value_heads "
       "num_experts_per_tok eos_token_id",
    1: "n_group topk_group first_k_dense_replace n_shared_experts bos_token_id decoder_start_token_id",
    0: "pad_token_id rescale_every",
}  # fmt: skip
RATE = re.compile(r"dropout(_prob|_rate)?$|_pdrop$|layerdrop$")  # what is left out at random differs
KINDS = {"causal": "CAUSAL_LM", "masked": "MASKED_LM", "sequence": "SEQ_TO_SEQ_CAUSAL_LM"}
LIMITS = {"loss": 1e-3, "logits": 1e-3, "gradient": 5e-3}


class Skipped(Exception):
    pass


def architectures(kind: str) -> list[str]:
    from transformers.models.auto import modeling_auto

    return list(getattr(modeling_auto, f"MODEL_FOR_{KINDS[kind]}_MAPPING_NAMES"))


def small_model(kind: str, name: str):
    import torch
    import transformers
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    automatic = getattr(transformers, {"causal": "AutoModelForCausalLM", "masked": "AutoModelForMaskedLM",
                                       "sequence": "AutoModelForSeq2SeqLM"}[kind])  # fmt: skip
    usual = CONFIG_MAPPING[name]()
    wanted = {key: size for size, keys in SIZES.items() for key in keys.split()}
    wanted |= {key: 0.0 for key in usual.to_dict() if RATE.search(key)}
    small = CONFIG_MAPPING[name](**{key: size for key, size in wanted.items() if hasattr(usual, key)}, tie_word_embeddings=False)
    with torch.device("meta"):
        weights = sum(weight.numel() for weight in automatic.from_config(copy.deepcopy(small)).parameters())
    if weights > LARGEST:
        raise Skipped(f"{weights} weights")
    torch.manual_seed(0)
    model = automatic.from_config(small).float()
    for weight in model.parameters():  # routers that begin as zeros choose among equals
        weight.data.add_(0.02 * torch.randn_like(weight))
    return model


def batch(kind: str) -> dict:
    import torch

    torch.manual_seed(1)
    tokens = torch.randint(3, 90, (2, 13))
    present = torch.ones_like(tokens)
    present[1, 9:] = 0
    labels = torch.randint(3, 90, (2, 7)) if kind == "sequence" else tokens
    return {"input_ids": tokens, "attention_mask": present, "labels": labels}


def run(kind: str, model, device: str):
    """Loss, logits, gradients by name, tokens."""
    model = model.to(device)
    inputs = {name: value.to(device) for name, value in batch(kind).items()}
    out = model(**inputs)
    out.loss.backward()
    gradients = {name: weight.grad.cpu() for name, weight in model.named_parameters() if weight.grad is not None}
    tokens = None
    if kind == "causal":
        model.eval()
        tokens = model.generate(inputs["input_ids"][:1, :5], max_new_tokens=6, do_sample=False).cpu()
    return out.loss.detach().cpu(), out.logits.detach().cpu(), gradients, tokens


def distance(x, y, least: float = 0.0) -> float:
    return float((x - y).abs().max() / max(least, float(y.abs().max()), 1e-6)) if x.numel() else 0.0


def differences(ours, theirs) -> list[str]:
    import torch

    found = {"loss": distance(ours[0], theirs[0], 1.0), "logits": distance(ours[1], theirs[1])}
    largest = max(float(gradient.abs().max()) for gradient in theirs[2].values() if gradient.numel())
    found["gradient"] = max(distance(ours[2][name], gradient, 1e-3 * largest) for name, gradient in theirs[2].items())
    different = [f"{what} by {by:.2g}" for what, by in found.items() if not by < LIMITS[what]]
    if theirs[3] is not None and not torch.equal(ours[3], theirs[3]):
        different.append("tokens")
    return different


def outcome(kind: str, name: str) -> tuple[str, str]:
    try:
        model = small_model(kind, name)
        copied = copy.deepcopy(model).train()
        theirs = run(kind, model.train(), "cpu")
    except Exception as error:  # whatever the package raises for a configuration that does not fit together
        return "skipped", str(error).split("\n")[0]
    try:
        different = differences(run(kind, copied, "npu"), theirs)
    except Exception as error:
        return "refused", str(error).strip().split("\n")[0]
    return ("differs" if different else "equal"), ", ".join(different)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("name", nargs="*")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error")
    import torch_npu  # noqa: F401

    counts = collections.Counter()
    for kind in arguments.kind:
        for name in arguments.name or architectures(kind):
            what, why = outcome(kind, name)
            counts[what] += 1
            print(f"{kind:<9} {name:<28} {what:<8} {why[:120]}", flush=True)
    print(", ".join(f"{count} {what}" for what, count in counts.items()))


if __name__ == "__main__":
    main()
