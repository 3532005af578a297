"""What other processes run, in a module of its own, which they can import."""

import dovetail_torch
import torch

dovetail_torch._autoload()


class Rows(torch.utils.data.Dataset):
    """A data set of device tensors."""

    def __init__(self, device: str):
        self.device = device

    def __len__(self) -> int:
        return 6

    def __getitem__(self, i: int):
        return torch.full((2,), float(i), device=self.device), torch.tensor([i])


def doubled(rank: int, layer: torch.nn.Module, x: torch.Tensor, queue, arrived) -> None:
    queue.put((rank, type(layer.weight), layer.weight.requires_grad, (2 * layer.weight).detach(), 2 * x))
    arrived.wait(60)  # shared memory comes from a process that lives
