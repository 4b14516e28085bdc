"""The `Trainer` of the package `transformers` on emulated devices against the CPU: a small language model, float32 unless said.

    UNDERSTUDY_DEVICES=2 understudy run python -m tests.clients.torch_npu.trainers [way …]

Needs the packages transformers, accelerate, peft and deepspeed. Each way trains eight steps; outcomes:

    equal      every step's loss is within 1e-3 of the CPU's, in bfloat16 within 1e-2
    differs    some are not; both rows are shown
    refused    a rank raised; its last line is shown
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import socket
import tempfile
import warnings
from dataclasses import dataclass, field

BATCH, STEPS = 8, 8


@dataclass
class Way:
    ranks: int = 1
    lora: bool = False
    within: float = 1e-3
    options: dict = field(default_factory=dict)


def zero(stage: int, **options) -> dict:
    """DeepSpeed, which shares out the optimizer's state (1), the gradients too (2), the weights too (3)."""
    optimizer = {"type": "AdamW", "params": {"lr": "auto", "weight_decay": "auto", "torch_adam": True}}
    sizes = {"train_micro_batch_size_per_gpu": "auto", "gradient_clipping": "auto"}
    return {"deepspeed": {"zero_optimization": {"stage": stage}, "optimizer": optimizer, **sizes}, **options}


SHARDED = {"fsdp": "full_shard auto_wrap", "fsdp_config": {"transformer_layer_cls_to_wrap": ["LlamaDecoderLayer"]}}
BFLOAT16 = {"bf16": True}
WAYS = {
    "alone": Way(),
    "alone, bfloat16": Way(within=1e-2, options=BFLOAT16),
    "alone, checkpoints": Way(options={"gradient_checkpointing": True}),
    "alone, LoRA": Way(lora=True),
    "alone, Adafactor": Way(options={"optim": "adafactor"}),
    "data parallel": Way(ranks=2),
    "data parallel, bfloat16": Way(ranks=2, within=1e-2, options=BFLOAT16),
    "fully sharded": Way(ranks=2, options=SHARDED),
    "fully sharded, bfloat16": Way(ranks=2, within=1e-2, options=SHARDED | BFLOAT16),
    "ZeRO 1": Way(ranks=2, options=zero(1)),
    "ZeRO 2": Way(ranks=2, options=zero(2)),
    "ZeRO 3": Way(ranks=2, options=zero(3)),
    "ZeRO 3, bfloat16, LoRA": Way(ranks=2, lora=True, within=1e-2, options=zero(3, **BFLOAT16)),
}
# What the CPU does not do the same way: it trains alone, in float32.
CPU_OPTIONS = "optim", "gradient_checkpointing"


def small_model(lora: bool):
    import transformers

    transformers.set_seed(0)
    sizes = {"vocab_size": 128, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2}
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes, **heads))
    if not lora:
        return model
    import peft

    return peft.get_peft_model(model, peft.LoraConfig(r=4, target_modules=["q_proj", "v_proj"]))


def samples() -> list[dict]:
    import torch

    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(3, 100, (BATCH * STEPS, 16), generator=generator)
    return [{"input_ids": row, "labels": row} for row in tokens]


def losses(way: Way, folder: str, options: dict) -> list[float]:
    """Of every step."""
    import transformers

    arguments = transformers.TrainingArguments(
        output_dir=folder, per_device_train_batch_size=BATCH // way.ranks, max_steps=STEPS, logging_steps=1, report_to=[],
        save_strategy="no", learning_rate=1e-2, lr_scheduler_type="constant", disable_tqdm=True, **options)  # fmt: skip
    trainer = transformers.Trainer(model=small_model(way.lora), args=arguments, train_dataset=samples())
    trainer.remove_callback(transformers.PrinterCallback)
    trainer.train()
    return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]


def run_rank(rank: int, way: Way, port: int, folder: str) -> None:
    import torch
    import torch_npu  # noqa: F401

    if way.ranks > 1:
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), WORLD_SIZE=str(way.ranks), RANK=str(rank),
                          LOCAL_RANK=str(rank), DS_ACCELERATOR="npu")  # fmt: skip
    torch.npu.set_device(rank)
    found = losses(way, folder, way.options)
    if rank == 0:
        pathlib.Path(folder, "losses.json").write_text(json.dumps(found))


def on_devices(way: Way) -> list[float]:
    import torch

    with tempfile.TemporaryDirectory() as folder, socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        torch.multiprocessing.spawn(run_rank, (way, port, folder), way.ranks)
        return json.loads(pathlib.Path(folder, "losses.json").read_text())


def on_cpu(way: Way) -> list[float]:
    options = {key: value for key, value in way.options.items() if key in CPU_OPTIONS}
    with tempfile.TemporaryDirectory() as folder:
        return losses(Way(lora=way.lora), folder, options | {"use_cpu": True})


def outcome(way: Way) -> str:
    theirs = on_cpu(way)
    try:
        ours = on_devices(way)
    except Exception as error:
        return f"refused  {str(error).strip().splitlines()[-1]}"
    if all(abs(x - y) <= way.within for x, y in zip(ours, theirs, strict=True)):
        return "equal"
    return f"differs\n  {ours}\n  {theirs}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("way", nargs="*", help="one of " + ", ".join(WAYS))
    chosen = parser.parse_args().way or list(WAYS)
    warnings.filterwarnings("ignore")
    os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error")
    for name in chosen:
        print(f"{name:<26} {outcome(WAYS[name])}", flush=True)


if __name__ == "__main__":
    main()
