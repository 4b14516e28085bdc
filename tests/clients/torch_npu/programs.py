"""Programs as users of PyTorch write them. Each takes a device and gives the numbers that it computed, step by step.

    python -m tests.clients.torch_npu.programs DEVICE [PROGRAM …]    prints a JSON object: program -> numbers, or an error

The test runs them on the CPU in one process and on the emulated device in another, and compares.
"""

import gzip
import importlib.util
import io
import json
import os
import pathlib
import sys
import tempfile
import threading
import traceback
import warnings

import torch
from torch import distributed, nn
from torch.nn import functional

from tests.clients.torch_npu import by_name  # noqa: F401 - its operators join those of serving
from tests.clients.torch_npu.serving import OPERATORS

PROGRAMS = dict(OPERATORS)


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def numbers(tensor) -> list[float]:
    return tensor.detach().cpu().double().flatten().tolist()


def summary(model) -> list[float]:
    """Two numbers of each parameter, the second sensitive to the order of its elements."""
    found = []
    for parameter in model.parameters():
        values = parameter.detach().cpu().double().flatten()
        found += [values.sum().item(), (values * torch.arange(1, len(values) + 1)).sum().item() / len(values)]
    return found


def digits(count: int = 320):
    """Images of hand-written digits that scikit-learn ships, and what they show. (Importing it takes seconds.)"""
    package = pathlib.Path(importlib.util.find_spec("sklearn").origin).parent
    with gzip.open(package / "datasets/data/digits.csv.gz", "rt") as file:
        rows = torch.tensor([[float(entry) for entry in line.split(",")] for line, _ in zip(file, range(count))])
    return rows[:, :64].reshape(-1, 8, 8) / 16, rows[:, 64].long()


def train(model, optimizer, batches, loss_of, steps: int, clip: float | None = None) -> list[float]:
    losses = []
    for step in range(steps):
        optimizer.zero_grad()
        loss = loss_of(model, *batches[step % len(batches)])
        loss.backward()
        if clip is not None:
            losses += numbers(nn.utils.clip_grad_norm_(model.parameters(), clip))
        optimizer.step()
        losses += numbers(loss)
    return losses + summary(model)


def batches_on(device: str, images, labels, size: int = 64):
    return [(images[at : at + size].to(device), labels[at : at + size].to(device)) for at in range(0, len(images), size)]


def classification(model, images, labels):
    return functional.cross_entropy(model(images), labels)


# ---- what needs no operator: memory, streams, events ----


@program
def copies(device):
    """Every type there and back, through pageable and pinned memory, with offsets and between blocks."""
    found = []
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.int8, torch.uint8,
                  torch.bool):  # fmt: skip
        host = (torch.arange(1, 4097) % 7).to(dtype)
        there = host.to(device)
        found += numbers(there[5:50].cpu()) + numbers(there.clone()[-3:].cpu())
        pinned = host.pin_memory() if device != "cpu" else host
        found += numbers(pinned.to(device, non_blocking=True).cpu()[:9])
    return found


@program
def memory(device):
    """Blocks of many sizes, freed and taken again in another order, keep what was put into them."""
    generator = torch.Generator().manual_seed(3)
    kept, found = {}, []
    for step in range(200):
        size = int(torch.randint(1, 1 << 16, (1,), generator=generator))
        kept[step] = (torch.full((size,), float(step)).to(device), step)
        if len(kept) > 20:
            key = sorted(kept)[int(torch.randint(0, 20, (1,), generator=generator))]
            tensor, value = kept.pop(key)
            host = tensor.cpu()
            found += [float(len(host)), host.min().item() - value, host.max().item() - value]
    return found


# ---- training ----


@program
def mlp(device):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 32), nn.Tanh(),
                          nn.Linear(32, 10)).to(device)  # fmt: skip
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    found = train(model, optimizer, batches_on(device, *digits()), classification, 20)
    images, labels = digits(64)
    with torch.no_grad():
        guesses = model(images.to(device)).argmax(1).cpu()
    return [*found, (guesses == labels).double().mean().item()]


@program
def cnn(device):
    torch.manual_seed(1)
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(2),
        nn.Conv2d(8, 12, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(12, 10),
    ).to(device)  # fmt: skip
    images, labels = digits(192)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    found = train(model, optimizer, batches_on(device, images[:, None], labels), classification, 6)
    model.eval()
    with torch.no_grad():
        return found + numbers(model(images[:4, None].to(device)))


class Block(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.norm, self.norm_of_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        # No bias: softmax does not see a key's, so its gradient is rounding alone, of which Adam makes whole steps.
        self.projections, self.output = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.projections(self.norm(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        query, key, value = parts[0], parts[1], parts[2]
        scores = query @ key.transpose(-2, -1) / (width // self.heads) ** 0.5
        mask = torch.tril(torch.ones(length, length, device=x.device))
        scores = scores.masked_fill(mask == 0, float("-inf"))
        x = x + self.output((scores.softmax(-1) @ value).transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.norm_of_mlp(x))


class Gpt(nn.Module):
    def __init__(self, symbols: int, length: int, width: int = 32, heads: int = 4, layers: int = 2):
        super().__init__()
        self.tokens, self.places = nn.Embedding(symbols, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, symbols)

    def forward(self, text):
        places = torch.arange(text.shape[1], device=text.device)
        return self.head(self.norm(self.blocks(self.tokens(text) + self.places(places))))


def text_batches(device: str, length: int = 16, size: int = 8, count: int = 4):
    """Windows of a text of the repository, and the same windows a letter later."""
    letters = (pathlib.Path(__file__).parents[3] / "LICENSE").read_text()[:2000]
    symbols = sorted(set(letters))
    codes = torch.tensor([symbols.index(letter) for letter in letters])
    starts = torch.arange(count * size) * 37
    windows = torch.stack([codes[start : start + length + 1] for start in starts])
    return len(symbols), [(part[:, :-1].to(device), part[:, 1:].to(device)) for part in windows.split(size)]


@program
def gpt(device):
    torch.manual_seed(2)
    symbols, batches = text_batches(device)
    model = Gpt(symbols, 16).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)

    def loss_of(model, text, later):
        return functional.cross_entropy(model(text).view(-1, symbols), later.reshape(-1))

    return train(model, optimizer, batches, loss_of, 6, clip=1.0)


# Where a gradient is nearly 0, rounding decides it. Those that divide by its size would make whole steps of that, so their eps
# (or what they start from) is above it.
OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01, eps=1e-4), "adamw": lambda p: torch.optim.AdamW(p, lr=0.01, eps=1e-4),
    "fused_adamw": lambda p: torch.optim.AdamW(p, lr=0.01, eps=1e-4, fused=True),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.005, eps=1e-4),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.05, initial_accumulator_value=0.01),
}  # fmt: skip


def train_with(name: str):
    def run(device):
        torch.manual_seed(4)
        model = nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 10)).to(device)
        return train(model, OPTIMIZERS[name](model.parameters()), batches_on(device, *digits(128)), classification, 6)

    run.__name__ = f"optimizer_{name}"
    return run


for name in OPTIMIZERS:
    program(train_with(name))


class Reader(nn.Module):
    """Says which digit an image shows: its rows are the steps of a network, of whose output and states `chosen` takes some."""

    def __init__(self, network, width: int, chosen):
        super().__init__()
        self.network, self.head, self.chosen = network, nn.Linear(width, 10), chosen

    def forward(self, rows):
        return self.head(self.chosen(*self.network(rows)))


@program
def recurrent(device):
    """An LSTM of which only the last state is used, then only the output; a GRU. Rows of an image are the steps."""
    images, labels = digits(128)
    batches, found = batches_on(device, images, labels), []
    torch.manual_seed(9)
    for network, chosen in [(nn.LSTM(8, 16, batch_first=True), lambda output, states: states[0][-1]),
                            (nn.LSTM(8, 16, batch_first=True), lambda output, states: output.mean(1)),
                            (nn.GRU(8, 16, num_layers=2, batch_first=True), lambda output, states: output[:, -1])]:  # fmt: skip
        model = Reader(network, 16, chosen).to(device)
        found += train(model, torch.optim.SGD(model.parameters(), lr=0.5), batches, classification, 6)
    return found


@program
def recurrent_layers(device):
    """What the adapter runs by name: LSTMs of several layers, of two directions, without bias, of one step."""
    torch.manual_seed(6)
    batches, found = batches_on(device, *digits(96), 48), []
    for network, width in ((nn.LSTM(8, 12, 2, batch_first=True), 12), (nn.LSTM(8, 6, 2, bidirectional=True, batch_first=True), 12),
                           (nn.LSTM(8, 5, bias=False, batch_first=True), 5)):  # fmt: skip
        model = Reader(network, width, lambda output, states: output.mean(1) + states[0][-1].repeat(1, output.shape[2] // states[0].shape[2]))
        model = model.to(device)
        found += train(model, torch.optim.SGD(model.parameters(), 0.5), batches, classification, 4)
    cell, states = nn.LSTMCell(8, 7).to(device), None
    for row in batches[0][0].unbind(1)[:3]:
        states = cell(row, states)
    (states[0] * states[1]).sum().backward()
    return found + numbers(states[0]) + sum((numbers(one.grad) for one in cell.parameters()), [])


@program
def speech(device):
    """Spectra of tones by short-time transforms, whose gradients reach the signal; a classifier of what is heard."""
    time, tones = torch.arange(2000) / 8000, torch.tensor([200.0, 330.0, 510.0, 800.0])
    signals = torch.sin(2 * torch.pi * tones[:, None] * time) + 0.2 * torch.cos(torch.arange(8000.0).reshape(4, 2000) ** 1.3)
    torch.manual_seed(6)
    window, gain = torch.hann_window(240).to(device), torch.ones(4, 1, device=device, requires_grad=True)
    layer = nn.Linear(129, 4).to(device)
    labels, losses = torch.arange(4).to(device), []
    optimizer = torch.optim.SGD([gain, *layer.parameters()], 0.05)
    for _ in range(3):
        optimizer.zero_grad()
        spectrum = torch.stft(gain * signals.to(device), 256, 80, 240, window, return_complex=True).abs().square()
        loss = functional.cross_entropy(layer((spectrum + 1e-3).log().mean(-1)), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses + numbers(gain) + summary(layer)


@program
def mixed_precision(device):
    """Half precision inside, a scaled loss outside. The CPU, which scales nothing, computes what it should come near."""
    torch.manual_seed(5)
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    scaler = torch.amp.GradScaler(device, init_scale=256.0, enabled=device != "cpu")
    losses = []
    for images, labels in batches_on(device, *digits()):
        optimizer.zero_grad()
        with torch.autocast(device, dtype=torch.float16, enabled=device != "cpu"):
            loss = classification(model, images, labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses += numbers(loss)
    return losses


@program
def checkpoint(device):
    """Training that is stopped, saved, loaded and gone on with is the training that was not stopped."""
    def build():
        torch.manual_seed(6)
        model = nn.Linear(64, 10).to(device)
        return model, torch.optim.Adam(model.parameters(), lr=0.01)

    images, labels = digits(128)
    batches = batches_on(device, images.flatten(1), labels)
    model, optimizer = build()
    train(model, optimizer, batches, classification, 3)
    file = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
    file.seek(0)
    state = torch.load(file, map_location=device)
    again, optimizer_again = build()
    again.load_state_dict(state["model"])
    optimizer_again.load_state_dict(state["optimizer"])
    return train(model, optimizer, batches, classification, 2) + train(again, optimizer_again, batches, classification, 2)


@program
def data_loader(device):
    """Worker processes, pinned memory, copies that do not block."""
    from torch.utils.data import DataLoader, TensorDataset

    images, labels = digits(96)
    loader = DataLoader(TensorDataset(images, labels), batch_size=32, num_workers=2, pin_memory=device != "cpu")
    found = []
    for part, names in loader:
        found += numbers(part.to(device, non_blocking=True)[0]) + numbers(names.to(device, non_blocking=True))
    return found


@program
def elementwise(device):
    """Arithmetic, comparison, indexing and reductions of small tensors, with strides and mixed types."""
    x = torch.linspace(-2, 2, 24).reshape(4, 6).to(device)
    y = x.t().contiguous().t() + 0.5
    found = numbers(x + y) + numbers(x * 2 - y / 3) + numbers((x > y.mean()).sum()) + numbers(x.exp().log())
    found += numbers(x[1:, ::2].sum(0)) + numbers(x.max(1).values) + numbers(x.argmax(1)) + numbers(x.abs().sqrt())
    found += numbers(torch.cat([x, y], 1)) + numbers(torch.where(x > 0, x, y)) + numbers(x.clamp(-1, 1))
    found += numbers((x.half() + x).float()) + numbers(x.long() % 3) + numbers(x[x > 0]) + numbers(x.softmax(-1))
    found += numbers(x[torch.tensor([2, 0], device=device)]) + numbers(x.cumsum(1)) + numbers(x @ y.t())
    return found


UNARY = {
    torch: "abs neg exp sin cos tanh sigmoid erf floor ceil sign relu square atan sinh cosh asinh isnan isinf trunc sgn exp2 "
           "expm1 logical_not",
    functional: "silu gelu softplus hardtanh hardswish hardsigmoid leaky_relu elu selu mish softshrink hardshrink logsigmoid "
                "celu",
}  # fmt: skip
POSITIVE = "log sqrt rsqrt reciprocal log2 log10 log1p digamma lgamma"
BINARY = "add sub mul div pow eq ne lt le gt ge floor_divide"  # with a tensor and with a number


@program
def operators(device):
    """Operators one by one, each on floats, and the arithmetic on other types, with strides and broadcasting."""
    x = torch.linspace(-3, 3, 50).reshape(5, 10).to(device)
    positive = torch.linspace(0.1, 3, 50).reshape(5, 10).to(device)
    whole = torch.arange(-25, 25).reshape(5, 10).to(device)
    found = []
    for module, names in UNARY.items():
        for name in names.split():
            found += numbers(getattr(module, name)(x))
    for name in POSITIVE.split():
        found += numbers(getattr(torch, name)(positive))
    for name in BINARY.split():
        found += numbers(getattr(torch, name)(x, positive)) + numbers(getattr(torch, name)(positive, 2))
    for name in ("add", "sub", "mul", "floor_divide", "eq", "bitwise_and", "bitwise_or"):
        found += numbers(getattr(torch, name)(whole, positive.long() + 1))
    found += numbers(x.t() + x.t()) + numbers(x[:1].expand(5, 10) * x) + numbers(x + x[:, :1]) + numbers(x.half() + x)
    found += numbers(torch.atan2(x, positive)) + numbers(torch.logical_and(x, positive))
    for name in ("ceil", "floor", "frac", "round", "trunc"):  # of lists
        found += [number for item in getattr(torch, f"_foreach_{name}")([x, positive.half()]) for number in numbers(item)]
    return found + numbers(torch.addcmul(x, positive, positive)) + numbers(torch.lerp(x, positive, 0.3))


@program
def printing(device):
    x = torch.linspace(-2, 2, 6).reshape(2, 3)
    text = str(x.to(device)).replace(f", device='{device}:0'", "").replace("       ", "")
    return [float(ord(letter)) for letter in text]


@program
def changed_environment(device):
    """Another thread changes the environment of the process while a model trains."""
    going = True

    def change():
        count = 0
        while going:
            count += 1
            os.environ[f"UNDERSTUDY_TEST_{count % 50}"] = "x" * (count % 300)

    thread = threading.Thread(target=change)
    thread.start()
    try:
        torch.manual_seed(7)
        model = nn.Linear(64, 10).to(device)
        images, labels = digits(128)
        batches = batches_on(device, images.flatten(1), labels)
        return train(model, torch.optim.SGD(model.parameters(), lr=0.1), batches, classification, 30)
    finally:
        going = False
        thread.join()


def resident() -> int:
    """Bytes of memory that the process has."""
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4096


def train_long(device: str, steps: int) -> tuple[list[float], list[int]]:
    """The losses of every fiftieth step, and the memory at it."""
    torch.manual_seed(8)
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10)).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    images, labels = digits(64)
    images, labels = images.flatten(1).to(device), labels.to(device)
    losses, memory = [], []
    for step in range(steps):
        optimizer.zero_grad()
        loss = classification(model, images, labels)
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            losses += numbers(loss)
            memory.append(resident())
    return losses, memory


@program
def soak(device):
    """The short form of tests/clients/torch_npu/soak.py: after the first steps training takes no more memory."""
    losses, memory = train_long(device, 300)
    return losses + [float(memory[-1] - memory[2] < 8 << 20)]


@program
def many_streams(device):
    """Forty streams, more than the adapter's pool has, each with work that waits for the one before it."""
    x, total = torch.linspace(0, 1, 64).to(device), torch.zeros(64).to(device)
    if device == "cpu":
        return numbers(sum((x * step for step in range(40)), total))
    torch.npu.synchronize()
    before, parts = None, []
    for step in range(40):
        stream = torch.npu.Stream()
        with torch.npu.stream(stream):
            if before is not None:
                stream.wait_event(before)
            total = total + x * step
            parts.append(total)  # none is freed while another stream may read it
            before = stream.record_event()
    before.synchronize()
    return numbers(total)


@program
def copies_between_devices(device):
    """Turned, and in parts; of another type, where that is changed first: the adapter's own cast does not wait for the copy."""
    other = "cpu" if device == "cpu" else "npu:1"
    x = torch.arange(12.0).reshape(3, 4).to(device)
    copies = (x.t().to(other), x.half().t().to(other), x[:, 1::2].to(other), x.int().to(other))
    return sum(map(numbers, copies), [])


@program
def two_devices(device):
    """Tensors and streams of two devices, and copies between them."""
    places = ["cpu", "cpu"] if device == "cpu" else ["npu:0", "npu:1"]
    x, y = (torch.linspace(0, number, 33).to(place) for number, place in enumerate(places, 1))
    for _ in range(4):
        x, y = x * 1.5 + y.to(places[0]), y - x.to(places[1]) / 4
    return numbers(x) + numbers(y)


@program
def model_on_two_devices(device):
    """Gradients come back over a copy between devices, each of which has a queue of its own in the adapter."""
    places = ["cpu", "cpu"] if device == "cpu" else ["npu:0", "npu:1"]
    torch.manual_seed(6)
    first, second = nn.Linear(12, 20).to(places[0]), nn.Linear(20, 4).to(places[1])
    x = torch.linspace(-1, 1, 60).reshape(5, 12).to(places[0])
    for _ in range(100):
        loss = second(torch.tanh(first(x)).to(places[1])).square().mean()
        loss.backward()
    return numbers(loss) + numbers(first.weight.grad) + numbers(second.bias.grad)


@program
def streams_and_events(device):
    """Work on a second stream that waits for the first one's event. (The CPU has one order only.)"""
    x = torch.arange(1 << 16, dtype=torch.float32).to(device)
    if device == "cpu":
        return numbers((x * 2 + 1)[:16]) + [1.0]
    first, second = torch.npu.Stream(), torch.npu.Stream()
    began, ended = torch.npu.Event(enable_timing=True), torch.npu.Event(enable_timing=True)
    torch.npu.synchronize()
    with torch.npu.stream(first):
        began.record()
        doubled = x * 2
        ended.record()
    with torch.npu.stream(second):
        second.wait_event(ended)
        result = doubled + 1
    second.synchronize()
    return numbers(result[:16]) + [float(ended.query() and began.elapsed_time(ended) >= 0)]


@program
def captured_graph(device):
    """A graph that was captured once works on the numbers that its input has at each replay."""
    x, weight = torch.zeros(4, 4).to(device), torch.eye(4).to(device) * 3
    replay, results = (lambda: None), []
    if device != "cpu":
        side = torch.npu.Stream()
        side.wait_stream(torch.npu.current_stream())  # which makes x and weight
        with torch.npu.stream(side):
            torch.relu(x @ weight - 1)  # once before, as the adapter asks
        torch.npu.synchronize()
        graph = torch.npu.NPUGraph()
        with torch.npu.graph(graph):
            y = torch.relu(x @ weight - 1)
        replay = graph.replay
    for value in (-1.0, 0.5, 2.0):
        x.fill_(value)
        replay()
        results += numbers((torch.relu(x @ weight - 1) if device == "cpu" else y).sum(0))
    return results


@program
def captured_function(device):
    """A function of the host in a captured graph is called at each replay, between the operators beside it."""
    x, seen = torch.zeros(3).to(device), []
    if device == "cpu":
        return [2.0, 1.0, 4.0, 2.0, 6.0, 3.0]
    stream = torch.npu.Stream()
    stream.wait_stream(torch.npu.current_stream())
    torch.npu._subscribe_report(stream)  # a thread of the adapter runs the stream's functions
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph, stream=stream):
        x += 1
        torch.npu._launch_host_func(stream, lambda *_: seen.append(len(seen)), ())
        x += 1
    results = []
    for _ in range(3):
        graph.replay()
        torch.npu.synchronize()
        results += numbers(x.max()) + [float(len(seen))]
    torch.npu._unsubscribe_report(stream)
    return results


@program
def updated_graph(device):
    """A captured attention whose valid length is another at each replay: the graph waits for the call that replaces its own."""
    query, key, value = (torch.linspace(-1, 1, 2 * rows * 16).sin().reshape(1, 2, rows, 16) for rows in (1, 24, 24))
    lengths = [7, 24, 3]
    if device == "cpu":
        return sum((numbers(functional.scaled_dot_product_attention(query, key[:, :, :n], value[:, :, :n])) for n in lengths), [])
    import torch_npu

    operands = [tensor.half().to(device) for tensor in (query, key, value)]
    graph, results = torch.npu.NPUGraph(), []
    with torch.npu.graph(graph, auto_dispatch_capture=True):
        result, _ = torch_npu.npu_fused_infer_attention_score(*operands, num_heads=2, input_layout="BNSD", scale=0.25, actual_seq_lengths_kv=[1])
    for length in lengths:
        graph.replay()
        graph.update(cpu_update_input=[{"actual_seq_lengths_kv": [length]}])
        torch.npu.synchronize()
        results += numbers(result)
    return results


@program
def fused_operators(device):
    """Operators of the adapter's own interface, which fill in much that a user leaves out; on the CPU by their formulas."""
    adapter = None if device == "cpu" else importlib.import_module("torch_npu")
    found = []
    # A product of 8-bit matrices with a scale for each column, then for each row as well.
    a, b = (torch.arange(rows * columns).reshape(rows, columns) % 23 - 11 for rows, columns in ((6, 32), (32, 16)))
    columns, rows = torch.linspace(0.01, 0.02, 16), torch.linspace(0.5, 1, 6)
    for of_rows in (None, rows):
        if adapter:
            factors = None if of_rows is None else of_rows.to(device)
            product = adapter.npu_quant_matmul(a.to(torch.int8).to(device), b.to(torch.int8).to(device), columns.to(device),
                                               pertoken_scale=factors, output_dtype=torch.bfloat16)  # fmt: skip
        else:
            product = ((a @ b) * columns * (1 if of_rows is None else of_rows[:, None])).bfloat16()
        found += numbers(product)
    # Rows go to their experts and come back, weighted; and the gradients of that.
    x = torch.linspace(-1, 1, 48).reshape(6, 8).to(device).requires_grad_()
    weights = torch.linspace(0.1, 1, 12).reshape(6, 2).to(device).requires_grad_()
    experts = torch.tensor([[2, 0], [1, 3], [3, 2], [0, 1], [2, 1], [3, 0]], device=device)
    if adapter:
        back = adapter.npu_moe_token_unpermute(*adapter.npu_moe_token_permute(x, experts), weights)
    else:
        back = x * weights.sum(1, keepdim=True)
    back.pow(2).sum().backward()
    found += numbers(back) + numbers(x.grad) + numbers(weights.grad)
    # A gate on integers, with numbers for all rows; what it gives is nearest integers and their step.
    x = (torch.arange(4 * 128).reshape(4, 128) * 37 % 401 - 200).int()
    scale, steps = torch.linspace(0.005, 0.01, 128), torch.linspace(0.5, 1, 4)[:, None]
    if adapter:
        levels, step = adapter.npu_dequant_swiglu_quant(x.to(device), weight_scale=scale.to(device), activation_scale=steps.to(device),
                                                        activate_left=True, quant_mode=1)  # fmt: skip
    else:
        left, right = (x * scale * steps).chunk(2, 1)
        gated = functional.silu(left) * right
        step = gated.abs().amax(1) / 127
        levels = (gated / step[:, None]).round()
    return found + numbers(levels) + numbers(step)


def double_in_place(device: str, tensors, answers) -> None:
    """Of another process: works on the tensor that it is given a handle of."""
    if device != "cpu":
        import torch_npu  # noqa: F401
    shared = tensors.get()
    shared *= 2
    answers.put(numbers(shared))
    tensors.get()  # the owner has looked
    del shared


@program
def shared_tensor(device):
    """Two processes, one tensor: what one writes, the other reads."""
    from torch import multiprocessing

    start = multiprocessing.get_context("spawn")
    tensors, answers = start.Queue(), start.Queue()
    other = start.Process(target=double_in_place, args=(device, tensors, answers))
    other.start()
    x = torch.linspace(-1, 1, 33).to(device)
    if device == "cpu":
        x.share_memory_()
    tensors.put(x)
    theirs = answers.get(timeout=120)
    mine = numbers(x)
    tensors.put(None)
    other.join()
    return theirs + mine + [float(other.exitcode)]


def collective_numbers(device: str, rank: int, ranks: int) -> list[float]:
    """A call of each kind of torch.distributed, by numbers that tell the ranks and places apart."""
    own, many = torch.arange(3.0, device=device) + 10 * rank, torch.arange(2.0 * ranks, device=device) + 100 * rank
    total, largest, first, rooted = own.clone(), own.clone(), own.clone(), own.clone()
    distributed.all_reduce(total)
    distributed.all_reduce(largest, op=distributed.ReduceOp.MAX)
    distributed.broadcast(first, 1)
    distributed.reduce(rooted, 0)
    parts = [torch.empty(3, device=device) for _ in range(ranks)]
    distributed.all_gather(parts, own)
    share, scattered, exchanged = torch.empty(2, device=device), torch.empty(2, device=device), torch.empty_like(many)
    distributed.reduce_scatter(share, list(many.split(2)))
    distributed.scatter(scattered, list(many.split(2)) if rank == 0 else None)
    distributed.all_to_all_single(exchanged, many)
    received = torch.empty(50000, device=device)
    for request in distributed.batch_isend_irecv([
            distributed.P2POp(distributed.isend, torch.full_like(received, rank), (rank + 1) % ranks),
            distributed.P2POp(distributed.irecv, received, (rank - 1) % ranks)]):  # fmt: skip
        request.wait()
    objects = [None] * ranks
    distributed.all_gather_object(objects, {"rank": rank})
    part = distributed.new_group([rank for rank in range(ranks) if rank != 0])
    alone = own.clone()
    if rank != 0:
        distributed.all_reduce(alone, group=part)
    distributed.barrier()
    tensors = [total, largest, first, *([rooted] if rank == 0 else []), *parts, share, scattered, exchanged, received[:2], alone]
    return [number for tensor in tensors for number in numbers(tensor)] + [float(entry["rank"]) for entry in objects]


def multiplied_by_ranks(device: str, rank: int, ranks: int) -> list[float]:
    """Operators that multiply and meet the other ranks in one call; the CPU has the numbers of all ranks."""
    from torch.nn.functional import one_hot

    def made(shape, seed, low=-1, high=2):
        return [torch.randint(low, high, shape, generator=torch.Generator().manual_seed(seed + other)) for other in range(ranks)]

    x, w, i, v = made((6, 256), 10), made((256, 5), 20), made((6, 256), 30, -4, 5), made((256, 5), 40, -4, 5)
    tokens, gmm = made((4, 1024), 50, -5, 6), made((2, 5, 3), 60)
    routed = [torch.stack([torch.arange(4) + other, torch.arange(4) + other + 1], 1) % (2 * ranks) for other in range(ranks)]
    rows = [torch.arange(2.0 * ranks * 5).reshape(-1, 5) % 7 + other for other in range(ranks)]
    if device == "cpu":
        summed, whole = sum(a @ b for a, b in zip(x, w)), sum(a @ b for a, b in zip(i, v))
        gathered, arrived = torch.cat(x), [torch.stack([of[2 * rank + e] for of in rows]) for e in range(2)]
        products = [part @ weight.float() for part, weight in zip(arrived, gmm[rank])]
        sent = [[rows[other][ranks * e + rank] @ gmm[other][e].float() for e in range(2)] for other in range(ranks)]
        counts = sum(one_hot(one, 2 * ranks).sum((0, 1)) for one in routed)[2 * rank : 2 * rank + 2]
        results = [summed, summed + ranks * 2, whole * 0.5, whole, x[rank].new_tensor(0) + sum(a @ (b + 1) for a, b in zip(x, v)) * 0.5,
                   gathered @ w[rank], gathered, summed.chunk(ranks)[rank], torch.cat(products),
                   torch.stack([row for of in sent for row in of]), counts, tokens[rank], tokens[rank]]  # fmt: skip
        return [number for result in results for number in numbers(result)]
    import torch_npu

    name = distributed.group.WORLD._get_backend(torch.device("npu")).get_hccl_comm_name(rank)
    half = lambda tensor: tensor.half().to(device)
    a, b, c, d, half_of = half(x[rank]), half(w[rank]), i[rank].char().to(device), v[rank].char().to(device), torch.full((5,), 0.5)
    reduce, ones = torch_npu.npu_mm_all_reduce_base, torch.ones(6, 5)
    summed, added = reduce(a, b, name), reduce(a, b.t().contiguous().t(), name, bias=half(ones[0]), x3=half(ones))
    plain = reduce(c, d, name, dequant_scale=torch_npu.npu_trans_quant_param(half_of.to(device)))
    by_rows = reduce(c, d, name, dequant_scale=half_of.to(device), pertoken_scale=torch.full((6,), 2.0, device=device))
    of_weight = reduce(a, d, name, antiquant_scale=half(half_of), antiquant_offset=half(ones[0]))
    gathered = torch_npu.npu_all_gather_base_mm(a, b, name, ranks)
    scattered = torch_npu.npu_mm_reduce_scatter_base(a, b, name, ranks)
    few, group = [1] * (2 * ranks), half(gmm[rank])
    products = torch_npu.npu_alltoallv_gmm(half(rows[rank]), group, name, ranks, few, few)[0]
    back = torch_npu.npu_gmm_alltoallv(half(rows[rank]), group, name, ranks, few, few)[0]
    ids, weights, token = routed[rank].int().to(device), torch.full((4, 2), 0.5, device=device), half(tokens[rank])
    whose, returned = (name, ranks, rank, 2 * ranks), []
    for version in ("", "_v2"):
        sent = getattr(torch_npu, f"npu_moe_distribute_dispatch{version}")(token, ids, *whose, expert_scales=weights, shared_expert_num=0)
        returned.append(getattr(torch_npu, f"npu_moe_distribute_combine{version}")(
            sent[0], ids, sent[2], sent[4], weights, *whose, expand_scales=sent[6], shared_expert_num=0))  # fmt: skip
    results = [summed, added, plain, by_rows, of_weight, *gathered, scattered, products, back, sent[3], *returned]
    return [number for result in results for number in numbers(result)]


def trained_in_parallel(device: str, rank: int) -> list[float]:
    """DistributedDataParallel and fully sharded data parallel, each rank with numbers of its own."""
    from torch.distributed.fsdp import fully_shard

    found = []
    for sharded in (False, True):
        torch.manual_seed(4)
        model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 3)).to(device)
        if sharded:
            for part in (model[0], model[2], model):
                fully_shard(part)
            parallel = model
        else:
            parallel = nn.parallel.DistributedDataParallel(model)
        optimizer = torch.optim.SGD(parallel.parameters(), 0.1, momentum=0.9)
        for step in range(4):
            x = torch.sin(torch.arange(48.0).reshape(8, 6) + 7 * rank + step).to(device)
            loss = parallel(x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        whole = [parameter.full_tensor() if sharded else parameter for parameter in model.parameters()]
        found += [*numbers(loss), *(number for parameter in whole for number in numbers(parameter))]
    return found


def work_as_rank(body, device: str, rank: int, ranks: int, file: str, answers) -> None:
    """Of a process of its own. What torch says of its own old names is no concern of ours."""
    warnings.simplefilter("ignore", FutureWarning)
    if device != "cpu":
        import torch_npu  # noqa: F401

        torch.npu.set_device(rank % 2)
        device = f"npu:{rank % 2}"
    torch.set_num_threads(1)
    distributed.init_process_group("gloo" if device == "cpu" else "hccl", init_method=f"file://{file}", rank=rank,
                                   world_size=ranks)  # fmt: skip
    answers.put((rank, body(device, rank, ranks)))
    distributed.destroy_process_group()


def on_ranks(body, device: str, ranks: int) -> list[float]:
    """A process for each rank."""
    from torch import multiprocessing

    start = multiprocessing.get_context("spawn")
    answers = start.Queue()
    with tempfile.TemporaryDirectory() as folder:
        others = [start.Process(target=work_as_rank, args=(body, device, rank, ranks, f"{folder}/meeting", answers))
                  for rank in range(ranks)]  # fmt: skip
        for other in others:
            other.start()
        found = dict(answers.get(timeout=120) for _ in others)
        for other in others:
            other.join()
    return [number for rank in range(ranks) for number in found[rank]] + [float(other.exitcode) for other in others]


def together(device: str, rank: int, ranks: int) -> list[float]:
    return collective_numbers(device, rank, ranks) + trained_in_parallel(device, rank)


@program
def several_ranks(device):
    """torch.distributed by HCCL beside Gloo."""
    return on_ranks(together, device, 3)


@program
def operators_of_ranks(device):
    """What multiplies and meets the other ranks in one call."""
    return on_ranks(multiplied_by_ranks, device, 2)


def run(device: str, names: list[str]) -> dict:
    results = {}
    for name in names or PROGRAMS:
        try:
            results[name] = PROGRAMS[name](device)
        except Exception:
            results[name] = traceback.format_exc()
    return results


if __name__ == "__main__":
    torch.set_num_threads(2)
    print(json.dumps(run(sys.argv[1], sys.argv[2:])))
