"""The adapter's operators for serving and training language models, each called once or twice, and on the CPU its formula.

Each function takes the adapter, whose functions take and change tensors of the host here, or None, and gives tensors.
"""

import importlib

import torch
from torch.nn import functional
from torch.utils import _pytree

OPERATORS = {}  # name -> a function of a device that gives numbers


def operator(function):
    def numbers(device: str) -> list[float]:
        results = _pytree.tree_leaves(function(None if device == "cpu" else Adapter(device)))
        return sum((result.detach().double().flatten().tolist() for result in results), [])

    OPERATORS[function.__name__] = numbers
    return function


class Adapter:
    def __init__(self, device: str):
        self.device, self.module = device, importlib.import_module("torch_npu")

    def __getattr__(self, name):
        def call(*operands, **named):
            tensors = [leaf for leaf in _pytree.tree_leaves((operands, named)) if isinstance(leaf, torch.Tensor)]
            there = {id(tensor): tensor.to(self.device) for tensor in tensors}
            operands, named = _pytree.tree_map_only(torch.Tensor, lambda tensor: there[id(tensor)], (operands, named))
            results = getattr(self.module, name)(*operands, **named)
            for tensor in tensors:
                if tensor.device.type == "cpu" and not tensor.requires_grad:
                    tensor.copy_(there[id(tensor)])
            return _pytree.tree_map_only(torch.Tensor, torch.Tensor.cpu, results)

        return call

    def in_format(self, tensor, number: int):
        """On the device, in this of the adapter's formats. Only while it is cast: convolutions would have formats of their own."""
        configuration = self.module.npu.config
        configuration.allow_internal_format = True
        cast = self.module.npu_format_cast(tensor.to(self.device), number)
        configuration.allow_internal_format = False
        return cast

    def in_blocks(self, weight):
        return self.in_format(weight, 29)


def wave(*shape: int, dtype=torch.float16, step: float = 0.7):
    """Numbers between -1 and 1 that do not repeat."""
    return (torch.arange(torch.Size(shape).numel(), dtype=torch.float64) * step + shape[-1]).sin().reshape(shape).to(dtype)


def whole(*shape: int, dtype=torch.int8, below: int = 23):
    """Whole numbers around 0."""
    return ((torch.arange(torch.Size(shape).numel()) * 7) % below - below // 2).reshape(shape).to(dtype)


def blocks(cache, width: int):
    """A cache [page, row, head, number] in blocks of so many numbers: [page, block, row, number]."""
    pages, rows = cache.shape[:2]
    return cache.reshape(pages, rows, -1, width).transpose(1, 2).contiguous()


# ---- caches of keys and values ----


@operator
def npu_scatter_pa_kv_cache(npu):
    slots, found = torch.tensor([7, 0, 19], dtype=torch.int32), []
    for mode in ("Norm", "PA_NZ"):
        key, value = wave(3, 2, 16), wave(3, 2, 32)
        caches = [torch.zeros(4, 5, 2, width, dtype=torch.float16) for width in (16, 32)]
        if npu:
            if mode == "PA_NZ":
                caches = [blocks(cache, 16) for cache in caches]
            npu.npu_scatter_pa_kv_cache(key, value, *caches, slots, cache_mode=mode)
        else:
            for tokens, cache in zip((key, value), caches):
                cache.flatten(0, 1)[slots.long()] = tokens
            if mode == "PA_NZ":
                caches = [blocks(cache, 16) for cache in caches]
        found += caches
    return found


@operator
def npu_gather_pa_kv_cache(npu):
    caches = [wave(5, 4, 2, 16), wave(5, 4, 2, 32)]
    pages, lengths, ends = torch.tensor([[3, 1], [0, 4]]), torch.tensor([6, 3]), torch.tensor([0, 6, 9])
    found = []
    for given, ends_given in ((lengths, False), (ends, True)):
        results = [torch.zeros(9, 2, width, dtype=torch.float16) for width in (16, 32)]
        if npu:
            npu.npu_gather_pa_kv_cache(*caches, pages.int(), given.int(), *results, is_seq_lens_cumsum=ends_given)
        else:
            results = [torch.cat([cache[line].flatten(0, 1)[:length] for line, length in zip(pages, lengths)]) for cache in caches]
        found += results
    return found


def normalized(x, gamma, epsilon):
    return x / (x.square().mean(-1, keepdim=True) + epsilon).sqrt() * gamma


def turned(x, cos, sin, interleaved: bool):
    """Rotary embedding; of neighbours, which come apart into halves, or of halves."""
    a, b = (x[..., ::2], x[..., 1::2]) if interleaved else x.chunk(2, -1)
    return torch.cat([a, b], -1) * cos + torch.cat([-b, a], -1) * sin


def latent_operands():
    return wave(2, 1, 3, 48), wave(32), wave(2, 1, 3, 16, step=0.3), wave(2, 1, 3, 16, step=0.4), torch.tensor([5, 17, 0, 31, 8, 9])


def latents(kv, gamma, cos, sin):
    kv, gamma, cos, sin = (tensor.float() for tensor in (kv, gamma, cos, sin))
    return turned(kv[..., 32:], cos, sin, True).half(), normalized(kv[..., :32], gamma, 1e-5).half()


@operator
def npu_kv_rmsnorm_rope_cache(npu):
    *operands, index = latent_operands()
    caches = [torch.zeros(2, 16, 1, width, dtype=torch.float16) for width in (16, 32)]
    if npu:
        return npu.npu_kv_rmsnorm_rope_cache(*operands, index, *caches, cache_mode="PA", is_output_kv=True)
    parts = latents(*operands)
    for cache, part in zip(caches, parts):
        cache.flatten(0, 1)[index] = part.reshape(6, 1, -1)
    return *caches, *parts


@operator
def npu_kv_rmsnorm_rope_cache_v2(npu):
    *operands, index = latent_operands()
    caches = [torch.zeros(2, 32, 1, width, dtype=torch.int8) for width in (16, 32)]
    scales = [wave(1, width, dtype=torch.float32).abs() * 50 + 3 for width in (16, 32)]
    if npu:
        parts = npu.npu_kv_rmsnorm_rope_cache_v2(*operands, index, *caches, k_rope_scale=scales[0], c_kv_scale=scales[1],
                                                 cache_mode="PA", is_output_kv=True)
        return *caches, *parts
    kv, gamma, cos, sin = (tensor.float() for tensor in operands)
    parts = turned(kv[..., 32:], cos, sin, True), normalized(kv[..., :32], gamma, 1e-5)
    for cache, part, scale in zip(caches, parts, scales):
        cache.flatten(0, 1)[index] = (part.reshape(6, 1, -1) * scale).round().clamp(-128, 127).to(torch.int8)
    return *caches, *(part.half() for part in parts)


@operator
def keys_and_values_apart(npu):
    """The same with keys and values of their own: 64 numbers of a key are turned."""
    key, gamma, cos, sin = wave(2, 2, 3, 192), wave(192), wave(2, 2, 3, 64, step=0.3), wave(2, 2, 3, 64, step=0.4)
    value, index = wave(2, 2, 3, 128, step=0.9), latent_operands()[-1]
    caches = [torch.zeros(2, 16, 2, width, dtype=torch.float16) for width in (192, 128)]
    if npu:
        npu.npu_kv_rmsnorm_rope_cache_v2(key, gamma, cos, sin, index, *caches, v=value, cache_mode="PA")
        return caches
    whole_key = normalized(key.float(), gamma.float(), 1e-5)
    parts = torch.cat([turned(whole_key[..., :64], cos.float(), sin.float(), True), whole_key[..., 64:]], -1), value
    for cache, part in zip(caches, parts):
        cache.flatten(0, 1)[index] = part.transpose(1, 2).flatten(0, 1).half()
    return caches


@operator
def npu_qkv_rms_norm_rope_cache(npu):
    qkv, gammas, index = wave(6, 512), (wave(128), wave(128, step=0.4)), torch.tensor([3, 0, 31, 8, 16, 9])
    cos, sin = wave(6, 128, step=0.3), wave(6, 128, step=0.5)
    query, caches = torch.zeros(6, 256).half(), [torch.zeros(2, 8, 16, 16).half() for _ in range(2)]
    if npu:
        parts = npu.npu_qkv_rms_norm_rope_cache(qkv, *gammas, cos, sin, index, query, *caches, [2, 3, 4, 128], [2, 1, 1],
                                                is_output_qkv=False)
        return query, *caches
    heads = qkv.float().view(6, 4, 128)
    q, k = (turned(normalized(part, gamma.float(), 1e-6), cos.float()[:, None], sin.float()[:, None], False)
            for part, gamma in zip((heads[:, :2], heads[:, 2:3]), gammas))
    for at, part in enumerate((k, heads[:, 3:])):
        cache = torch.zeros(2, 16, 1, 128).half()
        cache.flatten(0, 1)[index] = part.half()
        caches[at] = blocks(cache, 16)
    return q.half(), *caches


@operator
def npu_advance_step_flashattn(npu):
    tokens, positions, lengths, slots = (torch.tensor(line) for line in ([1, 2, 3, 4], [6, 3, 0, 9], [7, 4, 1, 10], [0, 0, 0, 0]))
    sampled, pages = torch.tensor([[11], [12], [13]]), torch.tensor([[4, 2, 0], [3, 1, 0], [5, 6, 0], [8, 7, 9]])
    if npu:
        npu.npu_advance_step_flashattn(tokens, sampled, positions, lengths, slots, pages, 4, 3, 4)
        return tokens, positions, lengths, slots
    tokens[:3], positions[:3] = sampled[:, 0], lengths[:3]
    slots[:3] = pages[torch.arange(3), lengths[:3] // 4] * 4 + lengths[:3] % 4
    lengths[:3] += 1
    return tokens, positions, lengths, slots


# ---- attention ----


@operator
def npu_ring_attention_update(npu):
    found = []
    for layout, shape, statistics, heads in (("SBH", (3, 2, 12), (2, 4, 3, 8), 4), ("TND", (5, 2, 64), (5, 2, 8), 2)):
        parts = []  # attention, maximum and sum of each, the last two 8 times
        for step, above in ((0.9, 2), (0.2, 3)):
            maximum, total = (wave(*statistics[:-1], 1, dtype=torch.float32, step=step) + more for more in (0, above))
            parts.append((wave(*shape, step=step), maximum.expand(statistics).contiguous(), total.expand(statistics).contiguous()))
        if npu:
            ends = torch.tensor([0, 2, 5]) if layout == "TND" else None
            found += npu.npu_ring_attention_update(*parts[0], *parts[1], actual_seq_qlen=ends, input_layout=layout, input_softmax_layout=layout)
            continue
        largest = torch.maximum(parts[0][1], parts[1][1])
        shares = [total * (maximum - largest).exp() for _, maximum, total in parts]
        total = shares[0] + shares[1]
        by_token = [(share / total)[..., :1].permute(2, 0, 1, 3) if layout == "SBH" else (share / total)[..., :1] for share in shares]
        result = sum(share * part[0].float().view(*shape[:2], heads, -1) if layout == "SBH" else share * part[0].float()
                     for share, part in zip(by_token, parts))  # fmt: skip
        found += [result.half(), largest, total]
    return found


@operator
def npu_attention_update(npu):
    scores, parts = [wave(5, dtype=torch.float32, step=step) for step in (0.3, 0.9)], [wave(5, 16, step=step) for step in (0.3, 0.9)]
    if npu:
        result, total = npu.npu_attention_update(scores, parts, 1)
        alone, _ = npu.npu_attention_update(scores, parts, 0)
        return result, total, alone
    total = torch.logaddexp(*scores)
    result = sum(part.float() * (score - total).exp()[:, None] for score, part in zip(scores, parts)).half()
    return result, total, result


@operator
def npu_top_k_top_p_sample(npu):
    counts, found = torch.tensor([5, 40, 3], dtype=torch.int32), []
    for dtype in (torch.float16, torch.bfloat16):
        logits, q, masses = wave(3, 40, dtype=dtype) * 4, wave(3, 40, dtype=torch.float32).abs() + 0.5, torch.tensor([0.6, 0.9, 1.0]).to(dtype)
        if npu:
            found += npu.npu_top_k_top_p_sample(logits, counts, masses, q, is_need_logits=True)
        else:
            found += sampled_tokens(logits, counts.tolist(), masses.tolist(), q)
    return found


def sampled_tokens(logits, counts, masses, q):
    chosen, kept = [], torch.full(logits.shape, float("-inf"))
    for row, (scores, count, mass) in enumerate(zip(logits.double(), counts, masses)):
        scores, columns = scores.sort(descending=True, stable=True)
        probabilities = scores[:count].softmax(0)
        left = int((probabilities.cumsum(0) - probabilities < mass).sum()) if mass < 1 else count
        kept[row, columns[:left]] = scores[:left].float()
        chosen.append(columns[(scores[:left].softmax(0) / (q[row, :left] + 1e-8)).argmax()])
    return torch.stack(chosen), kept


def attention_to(query, key, value, scale, chosen):
    """Of one token: query [head, number], key and value [token, number], the tokens that it sees."""
    scores = query @ key[chosen].T * scale
    return scores.softmax(-1) @ value[chosen], scores.amax(-1), (scores - scores.amax(-1, keepdim=True)).exp().sum(-1)


@operator
def npu_lightning_indexer(npu):
    query, key, weights = wave(2, 3, 4, 128), wave(2, 9, 1, 128, step=0.37), wave(2, 3, 4, step=0.9)
    found = []
    for lengths in (None, torch.tensor([9, 6])):
        if npu:
            given = None if lengths is None else lengths.int()
            places, values = npu.npu_lightning_indexer(query, key, weights, actual_seq_lengths_key=given, sparse_count=5, return_value=True)
        else:
            scores = torch.einsum("bsh,bshk->bsk", weights.double(), (query.double() @ key.double()[:, None, :, 0].mT).relu())
            for batch in range(2):
                keys = 9 if lengths is None else int(lengths[batch])
                for row in range(3):
                    scores[batch, row, keys - 2 + row :] = float("-inf")
            values, places = scores.topk(5)
            places = torch.where(values.isinf(), -1, places)[:, :, None]
            values = values.half()[:, :, None]
        found += [places, values]
    if npu:
        pages = key.reshape(2, 9, 1, 128)[:, :8].reshape(1, 16, 1, 128)
        found.append(npu.npu_lightning_indexer(query[:1], pages, weights[:1], actual_seq_lengths_key=torch.tensor([12]).int(),
                                               block_table=torch.tensor([[0]]).int(), layout_key="PA_BSND", sparse_count=5)[0])
    else:
        keys = key[:, :8].reshape(16, 128)[:12].double()
        scores = torch.einsum("sh,shk->sk", weights[0].double(), (query[0].double() @ keys.T).relu())
        scores[torch.ones(3, 12).triu(10) == 1] = float("-inf")
        found.append(scores.topk(5).indices)
    return found


@operator
def npu_sparse_flash_attention(npu):
    query, key = wave(2, 3, 4, 512), wave(2, 9, 1, 512, step=0.37)
    rope, key_rope = wave(2, 3, 4, 64, step=0.5), wave(2, 9, 1, 64, step=0.9)
    chosen = torch.tensor([[[[0, 2, 5]], [[1, 7, 3]], [[8, 4, -1]]], [[[6, 2, 0]], [[3, -1, -1]], [[5, 6, 7]]]])
    if npu:
        return npu.npu_sparse_flash_attention(query, key, key, chosen.int(), 0.05, query_rope=rope, key_rope=key_rope,
                                              attention_mode=2, return_softmax_lse=True)
    whole_query, whole_key = (torch.cat(parts, -1).double() for parts in ((query, rope), (key, key_rope)))
    rows = [attention_to(whole_query[b, s], whole_key[b, :, 0], key[b, :, 0].double(), 0.05,
                         [at for at in chosen[b, s, 0].tolist() if 0 <= at <= 6 + s]) for b in range(2) for s in range(3)]  # fmt: skip
    result, maximum, total = (torch.stack(parts).view(2, 3, 4, -1) for parts in zip(*rows))
    return result.half(), *(part.view(2, 1, 3, 4).float() for part in (maximum, total))


def delta_rule(rows, operands, state, scale):
    """Of the tokens of one sequence: the results and the states after each token."""
    query, key, value, beta, gates = (operand[rows].double() for operand in operands)
    results, states, state, many = [], [], state.double(), value.shape[1] // key.shape[1]
    for q, k, v, b, g in zip(query.repeat_interleave(many, 1), key.repeat_interleave(many, 1), value, beta, gates):
        state = state * g.exp()[:, None, None]
        state = state + torch.einsum("hv,hk->hvk", (v - (state @ k[..., None])[..., 0]) * b[:, None], k)
        results.append((state @ q[..., None])[..., 0] * scale)
        states.append(state)
    return torch.stack(results), torch.stack(states)


def delta_operands():
    query, key = (functional.normalize(wave(5, 2, 16, dtype=torch.float32, step=step), dim=-1).bfloat16() for step in (0.7, 0.3))
    return query, key, wave(5, 4, 8, dtype=torch.bfloat16), wave(5, 4, dtype=torch.bfloat16).abs(), -wave(5, 4, dtype=torch.float32).abs()


@operator
def npu_recurrent_gated_delta_rule(npu):
    query, key, value, beta, gates = delta_operands()
    places, found = torch.tensor([4, 0, 2, 6, 1]), []
    for accepted in (None, torch.tensor([2, 1])):
        state = wave(7, 4, 8, 16, dtype=torch.bfloat16)
        if npu:
            result = npu.npu_recurrent_gated_delta_rule(
                query, key, value, state, beta=beta, scale=0.25, actual_seq_lengths=torch.tensor([2, 3]).int(), g=gates,
                ssm_state_indices=places.int(), num_accepted_tokens=None if accepted is None else accepted.int())  # fmt: skip
        else:
            starts = places[torch.tensor([0, 2]) + (0 if accepted is None else accepted - 1)]
            parts = [delta_rule(rows, (query, key, value, beta, gates), start, 0.25)
                     for rows, start in zip((slice(0, 2), slice(2, 5)), state[starts])]  # fmt: skip
            result = torch.cat([part[0] for part in parts]).bfloat16()
            state[places] = torch.cat([part[1] for part in parts]).bfloat16()
        found += [result, state]
    return found


@operator
def npu_chunk_gated_delta_rule(npu):
    query, key, value, beta, gates = delta_operands()
    state, found = wave(2, 4, 8, 16, dtype=torch.bfloat16), []
    for given in (gates, None):
        if npu:
            found += npu.npu_chunk_gated_delta_rule(query, key, value, beta=beta, initial_state=state, scale=0.25, g=given,
                                                    actual_seq_lengths=torch.tensor([2, 3]).int())
        else:
            decay = torch.zeros(5, 4) if given is None else given
            parts = [delta_rule(rows, (query, key, value, beta, decay), start, 0.25)
                     for rows, start in zip((slice(0, 2), slice(2, 5)), state)]  # fmt: skip
            found += [torch.cat([part[0] for part in parts]).bfloat16(), torch.stack([part[1][-1] for part in parts]).bfloat16()]
    return found


# ---- experts ----


@operator
def npu_moe_re_routing(npu):
    tokens, counts = wave(12, 16), torch.tensor([[2, 1, 3], [1, 2, 3]])
    scales, found = wave(12, dtype=torch.float32), []
    for dtype in (torch.int32, torch.int64):
        if npu:
            found += npu.npu_moe_re_routing(tokens, counts.to(dtype), per_token_scales=scales)
        else:
            order = torch.arange(3).repeat(2).repeat_interleave(counts.flatten()).argsort(stable=True)
            found += [tokens[order], scales[order], order, counts.sum(0)]
    found.append(npu.npu_moe_re_routing(tokens, counts)[0] if npu else found[0])
    return found


@operator
def npu_moe_gating_top_k(npu):
    x, bias, found = wave(4, 8, dtype=torch.float32) * 3, wave(8, dtype=torch.float32, step=0.9), []
    for norm, renorm in ((0, 0), (1, 0)):
        if npu:
            found += npu.npu_moe_gating_top_k(x, 3, bias=bias, k_group=2, group_count=4, group_select_mode=1, norm_type=norm,
                                              renorm=renorm, out_flag=True, routed_scaling_factor=1.5)
        else:
            scores = (x.softmax(-1) if norm == 0 else x.sigmoid()).double()
            chosen = (scores + bias).view(4, 4, 2)
            groups = chosen.sum(-1).topk(2).indices
            allowed = torch.zeros(4, 4).scatter(1, groups, 1.0).bool()[:, :, None]
            experts = chosen.masked_fill(~allowed, float("-inf")).flatten(1).topk(3).indices
            weights = scores.gather(1, experts)
            found += [weights / (weights.sum(-1, keepdim=True) if norm else 1) * 1.5, experts, scores]
    table, ids = torch.tensor([[0, 1, 2], [7, 3, 4], [5, 6, 1]]), torch.tensor([2, 0, 1, 1])
    if npu:
        found += npu.npu_moe_gating_top_k(x, 3, input_ids=ids, tid2eid=table, norm_type=1)[:2]
    else:
        weights = x.sigmoid().double().gather(1, table[ids])
        found += [weights / weights.sum(-1, keepdim=True), table[ids]]
    return found


@operator
def npu_moe_gating_top_k_backward(npu):
    x, experts, slopes = wave(3, 8, dtype=torch.float64), torch.tensor([[1, 7, 3], [0, 2, 5], [6, 5, 4]]), wave(3, 3, dtype=torch.float32)
    if npu:
        return npu.npu_moe_gating_top_k_backward(x.sigmoid().float(), slopes, experts.int(), norm_type=1, routed_scaling_factor=2.5)
    x.requires_grad_()
    weights = x.sigmoid().gather(1, experts)
    (weights / weights.sum(-1, keepdim=True) * 2.5 * slopes).sum().backward()
    return x.grad


@operator
def npu_moe_gating_top_k_softmax_v2(npu):
    x, found = wave(4, 8, dtype=torch.float32) * 3, []
    for renorm, whole_wanted in ((0, False), (0, True), (1, False)):
        if npu:
            results = npu.npu_moe_gating_top_k_softmax_v2(x, k=3, renorm=renorm, output_softmax=whole_wanted)
            found += results if whole_wanted else results[:2]
        else:
            values, experts = x.topk(3)
            found += [values.softmax(-1) if renorm else x.softmax(-1).gather(1, experts), experts]
            found += [x.softmax(-1)] if whole_wanted else []
    return found


@operator
def first_routing(npu):
    """The first functions of a mixture of experts, one after the other."""
    scores, tokens = wave(6, 8, dtype=torch.float32) * 3, wave(6, 16)
    if npu:
        weights, experts, numbers = npu.npu_moe_gating_top_k_softmax(scores, None, k=3)
        rows, places, sorted_experts = npu.npu_moe_init_routing(tokens, numbers, experts, 6)
        return weights, experts, rows, sorted_experts, npu.npu_moe_compute_expert_tokens(sorted_experts, 8), places
    weights, experts = scores.softmax(-1).topk(3)
    order = experts.flatten().argsort(stable=True)
    ends = experts.flatten().bincount(minlength=8).cumsum(0)
    # Elements are numbered column by column.
    return weights, experts, tokens[order // 3], experts.flatten()[order], ends, order.argsort().view(6, 3).T


EXPERTS = [[2, 0], [1, 3], [3, 2], [0, 1], [2, 1], [3, 0]]


@operator
def npu_moe_finalize_routing(npu):
    experts, tokens, bias = torch.tensor(EXPERTS), wave(6, 16, dtype=torch.float32), wave(4, 16, dtype=torch.float32, step=0.3)
    order, weights, found = experts.flatten().argsort(stable=True), wave(6, 2, dtype=torch.float32), []
    rows, places = tokens[order // 2], order.argsort().int()
    for mode in range(4):
        if npu:
            own_rows, own_places = rows.view(4, 3, 16) if mode % 2 else rows, places if mode > 1 else places.view(6, 2).T.flatten()
            found.append(npu.npu_moe_finalize_routing(own_rows, tokens, None, bias, weights, own_places, experts.int(), mode))
        else:
            found.append(tokens + ((tokens[:, None] + bias[experts]) * weights[..., None]).sum(1))
    return found


@operator
def npu_moe_init_routing_quant(npu):
    x, experts = wave(6, 16, dtype=torch.float32), torch.tensor(EXPERTS)
    order = experts.flatten().argsort(stable=True)
    rows, found = x[order // 2], []
    for mode, scale in ((0, torch.tensor([70.0])), (1, wave(4, 16, dtype=torch.float32).abs() + 0.5), (1, None)):
        if npu:
            offset = torch.tensor([3.0]) if mode == 0 else None
            results = npu.npu_moe_init_routing_quant(x, experts.int(), scale=scale, offset=offset, active_num=12, expert_num=4,
                                                     expert_tokens_num_mode=2, quant_mode=mode)
            found += [*results[:3], *(results[4:] if mode else [])]
        else:
            step = None
            if mode == 0:
                values = rows * 70 + 3
            else:
                values = rows if scale is None else rows * scale[experts.flatten()[order]]
                step = values.abs().amax(-1) / 127
                values = values / step[:, None]
            found += [values.round().clamp(-128, 127), order.argsort(), experts.flatten().bincount()] + ([step] if mode else [])
    return found


@operator
def npu_moe_init_routing_v2(npu):
    x, experts = wave(6, 16), torch.tensor(EXPERTS)
    order, scale, found = experts.flatten().argsort(stable=True), wave(6, dtype=torch.float32), []
    for kind in (0, 1):
        if npu:
            found += npu.npu_moe_init_routing_v2(x, experts.int(), scale=scale, active_num=12, expert_num=4, expert_tokens_num_type=kind,
                                                 expert_tokens_num_flag=True, active_expert_range=[0, 4], row_idx_type=kind)
        else:
            counts = experts.flatten().bincount()
            found += [x[order // 2], order if kind else order.argsort(), counts if kind else counts.cumsum(0), scale[order // 2]]
    return found


@operator
def npu_moe_token_unpermute_with_routing_map(npu):
    tokens, found = wave(6, 16, dtype=torch.float32), []
    marks = torch.tensor([[1, 0, 1], [0, 1, 1], [1, 1, 0]]).bool()  # of tokens and experts
    rows = torch.full((3, 3), -1)
    rows.T[marks.T] = torch.arange(6)  # in the order of experts
    places, probs = rows[marks], wave(3, 3, dtype=torch.float32)
    for given in (None, probs):
        if npu:
            found.append(npu.npu_moe_token_unpermute_with_routing_map(tokens, places.int(), [3, 16], probs=given, routing_map=marks))
        else:
            weights = torch.ones(3, 3) if given is None else given
            found.append(torch.stack([sum(tokens[rows[t, e]] * weights[t, e] for e in range(3) if marks[t, e]) for t in range(3)]))
    return found


@operator
def npu_moe_update_expert(npu):
    experts, table = torch.tensor(EXPERTS), torch.tensor([[1, 0, -1], [2, 1, 5], [2, 3, 4], [1, 2, -1]])
    found, scales, threshold = [], wave(6, 2, dtype=torch.float32).abs(), torch.tensor([0.2, 0.3])
    active = torch.tensor([True] * 5 + [False])
    if npu:
        found.append(npu.npu_moe_update_expert(experts.int(), table.int(), local_rank_id=3, world_size=4)[0])
        return found + [*npu.npu_moe_update_expert(experts.int(), table.int(), expert_scales=scales, pruning_threshold=threshold,
                                                   active_mask=active, local_rank_id=0, world_size=4, balance_mode=1)]
    counts = table[experts, 0]
    found.append(table[experts, 1 + 3 // torch.div(4 + counts - 1, counts, rounding_mode="floor")])
    found.append(table[experts, 1 + torch.arange(6)[:, None] % counts])
    return found + [(scales >= (scales.sum(-1, keepdim=True) * threshold)) & active[:, None]]


@operator
def npu_grouped_matmul_add_(npu):
    found = []
    for shape in ((3, 16, 32), (48, 32)):
        x, weight, total = wave(9, 16), wave(9, 32), wave(*shape, dtype=torch.float32)
        if npu:
            npu.npu_grouped_matmul_add_(total, x, weight, torch.tensor([2, 6, 9]))
        else:
            parts = zip(x.double().split([2, 4, 3]), weight.double().split([2, 4, 3]))
            total += torch.stack([a.T @ b for a, b in parts]).view(shape)
        found.append(total)
    return found


# ---- rotary embeddings ----


@operator
def npu_rotary_mul(npu):
    x, cos, sin = wave(2, 3, 4, 16), wave(1, 3, 1, 16, step=0.3), wave(1, 3, 1, 16, step=0.4)
    matrix = whole(16, 16, dtype=torch.float16, below=5)
    if npu:
        return [npu.npu_rotary_mul(x, cos, sin), npu.npu_rotary_mul(x, cos, sin, "interleave"), npu.npu_rotary_mul(x, cos, sin, "half", matrix)]
    x, cos, sin, matrix = (tensor.float() for tensor in (x, cos, sin, matrix))
    halves = turned(x, cos, sin, False)
    pairs = x * cos + torch.stack([-x[..., 1::2], x[..., ::2]], -1).flatten(-2) * sin
    return [result.half() for result in (halves, pairs, x * cos + x @ matrix * sin)]


@operator
def npu_mrope(npu):
    query, key, found = wave(3, 256), wave(3, 128), []
    for sections, mode in ((None, "default"), ([8, 12, 12], "default"), ([11, 11, 10], "interleave")):
        positions = torch.tensor([[4, 0, 6], [1, 1, 2], [3, 5, 0]])[: None if sections else 1]
        for rotary in ("half", "interleave"):
            cache = wave(7, 64, step=0.3)
            if npu:
                found += npu.npu_mrope(positions if sections else positions[0], query, key, cache, 128, mrope_section=sections,
                                       rotary_mode=rotary, cache_mode=mode)  # fmt: skip
                continue
            rows = torch.arange(3).repeat_interleave(torch.tensor(sections or [32, 0, 0]))  # whose position each pair takes
            if mode == "interleave":
                rows = torch.where(torch.arange(32) < 33, torch.arange(32) % 3, 0)
            cos, sin = (part[positions[rows], torch.arange(32)[:, None]].T[:, None] for part in cache.float().chunk(2, -1))
            for tokens in (query, key):
                heads = tokens.float().view(3, -1, 128).clone()
                front = heads[..., :64]
                a, b = front.chunk(2, -1) if rotary == "half" else (front[..., ::2], front[..., 1::2])
                parts = [a * cos - b * sin, b * cos + a * sin]
                heads[..., :64] = torch.cat(parts, -1) if rotary == "half" else torch.stack(parts, -1).flatten(-2)
                found.append(heads.half())
    return found


@operator
def npu_grouped_matmul_finalize_routing(npu):
    """Products of 8 and 4 bits. The bias makes good for the 8 that the device takes from x."""
    x, weight = whole(6, 2048), whole(2, 2048, 7168, below=16)
    scale, row_scale, logits = wave(2, 1, 7168, dtype=torch.float32) / 100, wave(6, dtype=torch.float32), wave(6, dtype=torch.float32, step=0.2)
    shared, rows = wave(2, 7168, dtype=torch.bfloat16), torch.tensor([0, 1, 2, 3, 0, 2])
    bias = 8 * weight.sum(1, dtype=torch.int64) * scale[:, 0]
    if npu:
        packed = sum((weight[..., at::8].int() & 15) << 4 * at for at in range(8))
        result = npu.npu_grouped_matmul_finalize_routing(
            x, packed.int(), torch.tensor([2, 4]), scale=scale.view(torch.int32).long(), bias=bias, pertoken_scale=row_scale,
            shared_input=shared, logit=logits, row_index=rows, shared_input_weight=0.5, shared_input_offset=1, output_bs=4)  # fmt: skip
    else:
        result = torch.zeros(4, 7168, dtype=torch.float64)
        result[1:3] = shared.double() / 2
        products = torch.cat([a.double() @ b.double() * c for a, b, c in zip(x.split([2, 4]), weight, scale.double())])
        result.index_add_(0, rows, products * (row_scale * logits)[:, None])
    return result[:, ::97]


@operator
def gradients_of_unpermuted_tokens(npu):
    marks = torch.tensor([[1, 0, 1], [0, 1, 1], [1, 1, 0]]).bool()
    tokens, probs = wave(6, 16, dtype=torch.float32).requires_grad_(), wave(3, 3, dtype=torch.float32).requires_grad_()
    rows = torch.full((3, 3), -1)
    rows.T[marks.T] = torch.arange(6)
    if npu:
        result = npu.npu_moe_token_unpermute_with_routing_map(tokens, rows[marks].int(), [3, 16], probs=probs, routing_map=marks)
    else:
        result = torch.stack([sum(tokens[rows[t, e]] * probs[t, e] for e in range(3) if marks[t, e]) for t in range(3)])
    result.square().sum().backward()
    return result, tokens.grad, probs.grad


# ---- attention to parts of the keys ----


@operator
def npu_quant_lightning_indexer(npu):
    query, key = whole(2, 3, 4, 128), whole(2, 9, 1, 128, below=19)
    weights, scales, key_scales = wave(2, 3, 4), wave(2, 3, 4, step=0.3).abs() / 50, wave(2, 9, 1).abs() / 50
    if npu:
        return npu.npu_quant_lightning_indexer(query, key, weights, scales, key_scales, 0, 0, sparse_count=5)
    products = query.double() @ key[:, None, :, 0].double().mT * scales[..., None].double() * key_scales[:, None, None, :, 0].double()
    scores = torch.einsum("bsh,bshk->bsk", weights.double(), products.relu())
    scores[torch.ones(2, 3, 9).triu(7) == 1] = float("-inf")
    return scores.topk(5).indices


@operator
def npu_block_sparse_attention(npu):
    """Forward and backward."""
    query, key, value = wave(2, 4, 5, 128), wave(2, 4, 300, 128, step=0.37), wave(2, 4, 300, 128, step=0.9)
    mask = torch.arange(2 * 4 * 3 * 3).reshape(2, 4, 3, 3) % 5 < 3
    parts = [tensor.requires_grad_() for tensor in (query, key, value)]
    if npu:
        result, logarithms = npu.npu_block_sparse_attention(*parts, mask.to(torch.int8), [2, 128], q_input_layout="BNSD",
                                                            kv_input_layout="BNSD", num_key_value_heads=4, scale_value=0.09,
                                                            inner_precise=0, softmax_lse_flag=1)  # fmt: skip
    else:
        q, k, v = (part.double() for part in parts)
        kept = mask.repeat_interleave(2, 2)[:, :, :5].repeat_interleave(128, 3)[..., :300]
        scores = (q @ k.mT * 0.09).masked_fill(~kept, float("-inf"))
        result, logarithms = (scores.softmax(-1) @ v).half(), scores.logsumexp(-1)
    (result.float() * wave(2, 4, 5, 128, step=0.2)).sum().backward()
    return result, logarithms, *(part.grad[..., ::17] for part in parts)


@operator
def npu_nsa_select_attention_infer(npu):
    query, key, value = wave(2, 1, 4, 192), wave(3, 64, 2, 192, step=0.37), wave(3, 64, 2, 128, step=0.9)
    chosen, pages = torch.tensor([[[0, 1], [1, -1]], [[1, 0], [0, -1]]]), torch.tensor([[2, 0], [1, 2]])
    if npu:
        return npu.npu_nsa_select_attention_infer(query, key, value, chosen.int(), 0.07, 4, 2, 64, 2, 64, block_table=pages.int(),
                                                  actual_seq_kvlen=[70, 128])  # fmt: skip
    result = torch.zeros(2, 1, 4, 128)
    for batch, length in enumerate((70, 128)):
        keys, values = (cache[pages[batch]].flatten(0, 1)[:length].double() for cache in (key, value))
        for head in range(4):
            own, blocks = head // 2, chosen[batch, head // 2].tolist()
            tokens = torch.cat([torch.arange(64 * block, min(64 * block + 64, length)) for block in blocks if block >= 0])
            result[batch, 0, head] = attention_to(query[batch, 0, [head]].double(), keys[:, own], values[:, own], 0.07, tokens)[0]
    return result.half()


@operator
def npu_fused_floyd_attention(npu):
    """Forward and backward."""
    query, first, values = (wave(1, 1, 16, 128, 32, step=step) for step in (0.7, 0.37, 0.9))
    second, more = (wave(1, 1, 128, 128, 32, step=step) for step in (0.31, 0.83))
    parts = [tensor.requires_grad_() for tensor in (query, first, values, second, more)]
    mask = torch.arange(16 * 128).reshape(1, 1, 16, 1, 128) % 7 == 0
    if npu:
        maximum, total, result = npu.npu_fused_floyd_attention(*parts, atten_mask=mask, scale_value=0.2)
    else:
        q, k1, v1, k2, v2 = (part.double() for part in parts)
        scores = 0.2 * (torch.einsum("bhnmd,bhnkd->bhnmk", q, k1) + torch.einsum("bhnmd,bhkmd->bhnmk", q, k2))
        scores = scores.masked_fill(mask, float("-inf"))
        weights = scores.softmax(-1)
        result = (torch.einsum("bhnmk,bhnkd->bhnmd", weights, v1) + torch.einsum("bhnmk,bhkmd->bhnmd", weights, v2)).half()
        maximum = scores.amax(-1, keepdim=True)
        total = (scores - maximum).exp().sum(-1, keepdim=True).expand(*scores.shape[:-1], 8)
        maximum = maximum.expand(total.shape)
    (result.float() * wave(1, 1, 16, 128, 32, step=0.2)).sum().backward()
    return result[..., ::7], maximum[..., :2], total[..., :2], *(part.grad[:, :, ::5, ::7, ::11] for part in parts)


# ---- residual streams ----


@operator
def npu_mhc_pre(npu):
    """Forward and backward."""
    x, phi, alpha, bias = wave(2, 3, 4, 128), wave(24, 512, dtype=torch.float32), torch.tensor([0.5, 0.7, 0.3]), wave(24, dtype=torch.float32)
    parts = [tensor.requires_grad_() for tensor in (x, phi, alpha, bias, wave(4, 128, dtype=torch.float32, step=0.4))]
    if npu:
        read, written, mixed = npu.npu_mhc_pre(*parts[:4], gamma=parts[4], norm_eps=1e-5, hc_eps=1e-3, out_flag=1)[:3]
    else:
        streams, phi, alpha, bias, gamma = (part.double() for part in parts)
        mix = (streams * gamma).flatten(2) @ phi.T / (streams.flatten(2).square().mean(-1, keepdim=True) + 1e-5).sqrt()
        weights = (mix[..., :4] * alpha[0] + bias[:4]).sigmoid() + 1e-3
        read = (weights[..., None, :] @ streams)[..., 0, :].half()
        written = 2 * (mix[..., 4:8] * alpha[1] + bias[4:8]).sigmoid()
        mixed = (mix[..., 8:] * alpha[2] + bias[8:]).view(2, 3, 4, 4)
    sum((result.float() * wave(*result.shape, dtype=torch.float32, step=0.2)).sum() for result in (read, written, mixed)).backward()
    return read, written, mixed, *(part.grad[..., ::3] for part in parts)


@operator
def npu_mhc_post(npu):
    """Forward and backward."""
    parts = [wave(2, 3, 4, 128), wave(2, 3, 4, 4, dtype=torch.float32), wave(2, 3, 128, step=0.3), wave(2, 3, 4, dtype=torch.float32)]
    parts = [tensor.requires_grad_() for tensor in parts]
    if npu:
        result = npu.npu_mhc_post(*parts)
    else:
        x, mixing, out, weights = (part.double() for part in parts)
        result = (mixing.mT @ x + weights[..., None] * out[..., None, :]).half()
    (result.float() * wave(*result.shape, step=0.2)).sum().backward()
    return result, *(part.grad for part in parts)


# ---- what the indexer learns ----


def index_scores(query, key, weights):
    """Of rows and keys: [batch, row, key]."""
    return torch.einsum("bsh,bshk->bsk", weights, (query @ key[:, None, :, 0].mT).relu())


@operator
def npu_lightning_indexer_grad(npu):
    query, key, weights, slopes = wave(1, 3, 8, 128), wave(1, 2050, 1, 128, step=0.37), wave(1, 3, 8, step=0.9), wave(1, 3, 2048, step=0.2)
    places = (torch.arange(2048) * 7 + torch.arange(3)[:, None]) % 2048
    if npu:
        slopes_of = npu.npu_lightning_indexer_grad(query, key, slopes, places[None].int(), weights)
    else:
        parts = [tensor.double().requires_grad_() for tensor in (query, key, weights)]
        (index_scores(*parts)[0].gather(1, places) * slopes).sum().backward()
        slopes_of = [part.grad.half() for part in parts]
    return slopes_of[0], slopes_of[1][:, ::29], slopes_of[2]


def dense_operands():
    query, key = wave(2, 3, 32, 128), wave(2, 5, 32, 128, step=0.37)
    return query, key, wave(2, 3, 8, 128, step=0.6), wave(2, 5, 1, 128, step=0.23), wave(2, 3, 8, step=0.9)


def seen(rows: int, keys: int):
    return torch.ones(rows, keys).triu(keys - rows + 1) == 0


@operator
def npu_dense_lightning_indexer_softmax_lse(npu):
    _, _, query, key, weights = dense_operands()
    if npu:
        return npu.npu_dense_lightning_indexer_softmax_lse(query, key, weights)
    scores = index_scores(query.double(), key.double(), weights.double()).masked_fill(~seen(3, 5), float("-inf"))
    return scores.amax(-1), (scores - scores.amax(-1, keepdim=True)).exp().sum(-1)


@operator
def npu_dense_lightning_indexer_grad_kl_loss(npu):
    query, key, query_index, key_index, weights = dense_operands()
    scores = (query.double().transpose(1, 2) @ key.double().permute(0, 2, 3, 1) * 0.09).masked_fill(~seen(3, 5), float("-inf"))
    maximum, total = scores.amax(-1, keepdim=True), (scores - scores.amax(-1, keepdim=True)).exp().sum(-1, keepdim=True)
    if npu:
        statistics = npu.npu_dense_lightning_indexer_softmax_lse(query_index, key_index, weights)
        return npu.npu_dense_lightning_indexer_grad_kl_loss(query, key, query_index, key_index, weights, maximum.float(), total.float(),
                                                            *statistics, 0.09)  # fmt: skip
    parts = [tensor.double().requires_grad_() for tensor in (query_index, key_index, weights)]
    wanted, found = scores.softmax(-1).mean(1), index_scores(*parts).masked_fill(~seen(3, 5), -1e300).log_softmax(-1)
    loss = (wanted * (wanted.log() - found).masked_fill(wanted == 0, 0)).nansum()
    loss.backward()
    return *(part.grad.half() for part in parts), loss


@operator
def npu_sparse_flash_attention_grad(npu):
    query, key, slopes = wave(1, 2, 4, 512), wave(1, 1100, 1, 512, step=0.37), wave(1, 2, 4, 512, step=0.2)
    rope, key_rope = wave(1, 2, 4, 64, step=0.5), wave(1, 1100, 1, 64, step=0.9)
    chosen = (torch.arange(1024) * 3 + torch.arange(2)[:, None]) % 1099
    parts = [tensor.double().requires_grad_() for tensor in (query, key, key, rope, key_rope)]
    q, k = torch.cat([parts[0], parts[3]], -1), torch.cat([parts[1], parts[4]], -1)
    rows = [attention_to(q[0, s], k[0, :, 0], parts[2][0, :, 0], 0.05, chosen[s]) for s in range(2)]
    result, maximum, total = (torch.stack(part)[None] for part in zip(*rows))
    if npu:
        found = npu.npu_sparse_flash_attention_grad(query, key, key, chosen[None, :, None].int(), slopes, result.detach().half(),
                                                    maximum.detach().float()[:, None], total.detach().float()[:, None], 0.05, 1,
                                                    query_rope=rope, key_rope=key_rope, attention_mode=2)  # fmt: skip
    else:
        (result * slopes).sum().backward()
        found = [part.grad.half() for part in parts]
    return [part if part.shape[1] == 2 else part[:, ::29] for part in found]


@operator
def npu_sparse_lightning_indexer_grad_kl_loss(npu):
    query, key, weights = wave(1, 2, 32, 512), wave(1, 1100, 1, 512, step=0.37), wave(1, 2, 8, step=0.9)
    query_index, key_index = wave(1, 2, 8, 128, step=0.6), wave(1, 1100, 1, 128, step=0.23)
    rope, key_rope = wave(1, 2, 32, 64, step=0.5), wave(1, 1100, 1, 64, step=0.9)
    chosen = (torch.arange(1024) * 3 + torch.arange(2)[:, None]) % 1099
    q, k = torch.cat([query, rope], -1).double()[0], torch.cat([key, key_rope], -1).double()[0, :, 0]
    scores = torch.stack([q[s] @ k[chosen[s]].T * 0.05 for s in range(2)])
    maximum, total = scores.amax(-1), (scores - scores.amax(-1, keepdim=True)).exp().sum(-1)
    if npu:
        found = npu.npu_sparse_lightning_indexer_grad_kl_loss(query, key, query_index, key_index, weights, chosen[None, :, None].int(),
                                                              maximum.float()[None, None], total.float()[None, None], 0.05,
                                                              query_rope=rope, key_rope=key_rope)  # fmt: skip
    else:
        parts = [tensor.double().requires_grad_() for tensor in (query_index, key_index, weights)]
        wanted, guess = scores.softmax(-1).mean(1), index_scores(*parts)[0].gather(1, chosen).log_softmax(-1)
        loss = (wanted * (wanted.log() - guess)).sum()
        loss.backward()
        found = [*(part.grad.half() for part in parts), loss]
    return found[0], found[1][:, ::29], *found[2:]


# ---- what latent attention does before attention ----


def latent_attention(npu, name: str, **attributes):
    x, down = wave(2, 1024, dtype=torch.bfloat16), wave(1024, 1536, dtype=torch.bfloat16)
    up = wave(1536, 2 * 192, dtype=torch.bfloat16, step=0.3)
    up_key, down_key = wave(2, 128, 512, dtype=torch.bfloat16), wave(1024, 576, dtype=torch.bfloat16, step=0.37)
    gammas = wave(1536, dtype=torch.bfloat16), wave(512, dtype=torch.bfloat16, step=0.9)
    sin, cos = (wave(2, 64, dtype=torch.bfloat16, step=step) for step in (0.4, 0.5))
    caches, index = [torch.zeros(2, 16, 1, width, dtype=torch.bfloat16) for width in (512, 64)], torch.tensor([5, 17])
    if npu:
        places = {"cache_index": index} if "query_norm_flag" in attributes else {}
        weights = [npu.in_blocks(down), npu.in_blocks(up), up_key, npu.in_blocks(down_key)]
        results = getattr(npu, name)(x, *weights, *gammas, sin, cos, *([] if places else [index]), *caches, **places, **attributes)
        return results[:2] + (results[3:4] if places else ()), caches
    x, down, up, up_key, down_key, sin, cos = (tensor.double() for tensor in (x, down, up, up_key, down_key, sin, cos))
    inner = attributes.get("qc_qr_scale", 1) * normalized(x @ down, gammas[0].double(), 1e-5)
    heads, latent = (inner @ up).view(2, 2, 192), x @ down_key
    query = torch.einsum("thd,hdl->thl", heads[..., :128], up_key)
    parts = attributes.get("kc_scale", 1) * normalized(latent[:, :512], gammas[1].double(), 1e-5), turned(latent[:, 512:], cos, sin, True)
    for cache, part in zip(caches, parts):
        cache.flatten(0, 1)[index] = part.bfloat16()[:, None]
    rope = turned(heads[..., 128:], cos[:, None], sin[:, None], True)
    return query.bfloat16(), rope.bfloat16(), [inner.bfloat16()] if "query_norm_flag" in attributes else [], caches


@operator
def npu_mla_prolog_v2(npu):
    return latent_attention(npu, "npu_mla_prolog_v2")


@operator
def npu_mla_prolog_v3(npu):
    return latent_attention(npu, "npu_mla_prolog_v3", query_norm_flag=True, qc_qr_scale=1.5, kc_scale=0.5)


# ---- weights in blocks ----


@operator
def npu_format_cast(npu):
    """There and back, and products with what was cast."""
    casts = [(29, wave(40, 24)), (29, whole(2, 3, 17, 70)), (29, whole(5, 9, dtype=torch.int32)), (3, wave(2, 17, 3, 5)),
             (4, wave(20, 17, 3, 2)), (32, wave(2, 17, 3, 5, 2)), (33, wave(20, 17, 1, 3, 2))]  # fmt: skip
    x, weight, bias = whole(5, 40, dtype=torch.float16), whole(40, 24, dtype=torch.float16), whole(24, dtype=torch.float16)
    if npu:
        there = [npu.in_format(tensor, form) for form, tensor in casts]
        assert [int(npu.module.get_npu_format(tensor)) for tensor in there] == [form for form, _ in casts]
        back = [npu.in_format(there[0], 2), *there[1:]]
        x, bias, cast, turned = x.to(npu.device), bias.to(npu.device), npu.in_blocks(weight), npu.in_blocks(weight.T.contiguous())
        products = [x @ cast, torch.addmm(bias, x, cast), functional.linear(x, turned, bias), x @ turned.T]
    else:
        back, products = [tensor for _, tensor in casts], [x @ weight, bias + x @ weight, bias + x @ weight, x @ weight]
    return [tensor.cpu() for tensor in (*back, *products)]


@operator
def quantized_weights_in_blocks(npu):
    """Products of integers as serving engines prepare their weights."""
    x, weight, experts = whole(5, 64), whole(64, 96), whole(3, 64, 96, below=19)
    scale, scales, of_row = wave(96, dtype=torch.float32), wave(3, 96, dtype=torch.float32, step=0.3), wave(5, dtype=torch.float32) + 2
    ends, group = torch.tensor([2, 2, 5]), [0, 0, 2, 2, 2]
    if npu:
        cast, turned, blocks = npu.in_blocks(weight), npu.in_blocks(weight.T.contiguous()), npu.in_blocks(experts)
        named = {"output_dtype": torch.bfloat16}
        products = [npu.npu_quant_matmul(x, tensor, scale.bfloat16(), pertoken_scale=of_row, **named) for tensor in (cast, turned.T)]
        half = npu.npu_weight_quant_batchmatmul(x.half(), cast, scale.half())
        split = {"group_list": ends, "split_item": 3, "group_type": 0, "group_list_type": 0}
        grouped = npu.npu_grouped_matmul([x], [blocks], scale=[scales.bfloat16()], per_token_scale=[of_row], **split, **named)[0]
        gated, gated_scale = npu.npu_grouped_matmul_swiglu_quant(x=x, weight=blocks, group_list=ends, weight_scale=scales, x_scale=of_row)[:2]
    else:
        sums, rows = x.double() @ weight.double(), torch.stack([x[i].double() @ experts[g].double() for i, g in enumerate(group)])
        products = [(sums * scale.bfloat16().double() * of_row[:, None]).bfloat16()] * 2
        half = (sums * scale.half().double()).half()
        grouped = (rows * scales.bfloat16()[group].double() * of_row[:, None]).bfloat16()
        a, b = (rows * scales[group].double() * of_row[:, None]).chunk(2, -1)
        values = functional.silu(a) * b
        gated_scale = values.abs().amax(-1) / 127
        gated = (values / gated_scale[:, None]).round()
    return *products, half, grouped, gated * 0.25, gated_scale


# ---- sparse tensors ----


@operator
def coalesced(npu):
    places, values = torch.tensor([[0, 1, 0, 3], [2, 0, 2, 1]]), wave(4, 3, dtype=torch.float32)
    device = npu.device if npu else "cpu"
    tensor = torch.sparse_coo_tensor(places.to(device), values.to(device), (4, 3, 3)).coalesce()
    return tensor.indices().cpu(), tensor.values().cpu()
