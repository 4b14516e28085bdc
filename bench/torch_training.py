"""Training steps of PyTorch on the emulated Ascend device beside the same steps on PyTorch's CPU device, in turn.

    understudy run python bench/torch_training.py

in an environment with `.[torch-npu]`. Two threads each; the median of the steps, and the ratio of the medians (aim: 1.5 or less).
"""

from __future__ import annotations

import statistics
import time

import torch
import torch_npu  # noqa: F401
from torch import nn

THREADS, STEPS, CALLS = 2, 7, 10000


class Block(nn.Module):
    """A transformer layer, 256 wide, with 8 heads."""

    def __init__(self, width: int = 256, heads: int = 8):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mix, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.mix(self.norm1(x)).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(*parts, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(x.shape))
        return x + self.wide(self.norm2(x))


class Text(nn.Module):
    """GPT of 4 layers; loss of 8 texts of 128 tokens."""

    def __init__(self, tokens: int = 512, width: int = 256):
        super().__init__()
        self.embedding = nn.Embedding(tokens, width)
        self.layers = nn.Sequential(*(Block(width) for _ in range(4)), nn.LayerNorm(width), nn.Linear(width, tokens))
        self.register_buffer("text", torch.randint(tokens, (8, 129)))

    def forward(self):
        logits = self.layers(self.embedding(self.text[:, :-1]))
        return nn.functional.cross_entropy(logits.flatten(0, 1), self.text[:, 1:].flatten())


class Residual(nn.Module):
    def __init__(self, before: int, after: int, stride: int):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(before, after, 3, stride, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU(),
                                  nn.Conv2d(after, after, 3, 1, 1, bias=False), nn.BatchNorm2d(after))
        self.skip = nn.Identity() if before == after else nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False),
                                                                         nn.BatchNorm2d(after))

    def forward(self, x):
        return torch.relu(self.body(x) + self.skip(x))


class Images(nn.Module):
    """ResNet-18; loss of 8 images of 3 x 64 x 64."""

    def __init__(self):
        super().__init__()
        layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
        before = 64
        for after, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
            layers += [Residual(before, after, stride), Residual(after, after, 1)]
            before = after
        self.layers = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))
        self.register_buffer("images", torch.randn(8, 3, 64, 64))
        self.register_buffer("labels", torch.randint(10, (8,)))

    def forward(self):
        return nn.functional.cross_entropy(self.layers(self.images), self.labels)


def stepper(model: nn.Module):
    optimizer = torch.optim.Adam(model.parameters(), 1e-4)

    def step() -> float:
        optimizer.zero_grad()
        loss = model()
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    return step


def small_calls(device: str):
    x = torch.zeros(16, device=device)

    def run() -> float:
        for _ in range(CALLS):
            x.add_(1)
        return float(x[0])

    return run


def seconds(function) -> float:
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


def main() -> None:
    torch.set_num_threads(THREADS)
    print(f"{'median of a step':24}{'npu ms':>10}{'cpu ms':>10}{'ratio':>8}")
    for name, make in {"GPT": Text, "ResNet-18": Images, f"{CALLS} x add_(1)": None}.items():
        runs = {}
        for device in ("npu", "cpu"):
            torch.manual_seed(1)
            runs[device] = small_calls(device) if make is None else stepper(make().to(device))
            runs[device]()  # allocations and first looks
        times = {device: [] for device in runs}
        for _ in range(STEPS):
            for device, run in runs.items():
                times[device].append(seconds(run))
        npu, cpu = (statistics.median(times[device]) * 1e3 for device in ("npu", "cpu"))
        print(f"{name:24}{npu:10.1f}{cpu:10.1f}{npu / cpu:8.2f}")


if __name__ == "__main__":
    main()
