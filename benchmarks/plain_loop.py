"""The loop a careful PyTorch user writes: one run at a time, data on the device, fused AdamW.

It is what groklab is raced against (`race.py`), and it shares nothing with groklab but the facts of the study.
"""

import torch
from torch import Tensor, nn

MODULUS = 97
TOKENS = MODULUS + 2


class Block(nn.Module):
    def __init__(self, d_model: int, heads: int) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(d_model, heads, batch_first=True)
        self.attention_norm = nn.LayerNorm(d_model)
        self.ffn = nn.Sequential(nn.Linear(d_model, 4 * d_model), nn.GELU(), nn.Linear(4 * d_model, d_model))
        self.ffn_norm = nn.LayerNorm(d_model)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        attended, _ = self.attention(x, x, x, attn_mask=mask, need_weights=False)
        x = self.attention_norm(x + attended)
        return self.ffn_norm(x + self.ffn(x))  # type: ignore[no-any-return]


class PlainTransformer(nn.Module):
    def __init__(self, layers: int = 2, d_model: int = 128, heads: int = 4) -> None:
        super().__init__()
        self.tokens = nn.Embedding(TOKENS, d_model)
        self.positions = nn.Embedding(5, d_model)
        self.blocks = nn.ModuleList(Block(d_model, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(d_model)
        self.readout = nn.Linear(d_model, MODULUS)
        self.register_buffer("mask", torch.triu(torch.full((4, 4), -torch.inf), diagonal=1), persistent=False)
        self.register_buffer("places", torch.arange(4), persistent=False)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.tokens(tokens) + self.positions(self.places)
        for block in self.blocks:
            x = block(x, self.mask)
        return self.readout(self.norm(x[:, -1]))  # type: ignore[no-any-return]


class PlainLoop:
    """Modular addition, batches of 512 with replacement, AdamW with linear warmup."""

    def __init__(self, seed: int = 0, batch: int = 512, device: str = "cpu", compiled: bool = False) -> None:
        torch.manual_seed(seed)
        x, y = torch.meshgrid(torch.arange(MODULUS), torch.arange(MODULUS), indexing="ij")
        o, equals = torch.full_like(x, MODULUS), torch.full_like(x, MODULUS + 1)
        self.inputs = torch.stack([x, o, y, equals], dim=-1).view(-1, 4).to(device)
        self.labels = ((x + y) % MODULUS).view(-1).to(device)
        self.train = torch.randperm(MODULUS**2)[: MODULUS**2 // 2].to(device)
        self.batch = batch
        self.model = PlainTransformer().to(device)
        self.forward = torch.compile(self.model) if compiled else self.model
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=1e-3, betas=(0.9, 0.98), weight_decay=0.5, fused=True
        )
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda step: min(step / 50, 1.0))

    def step(self) -> Tensor:
        drawn = self.train[torch.randint(len(self.train), (self.batch,), device=self.train.device)]
        loss = nn.functional.cross_entropy(self.forward(self.inputs[drawn]), self.labels[drawn])
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        self.schedule.step()
        return loss.detach()
