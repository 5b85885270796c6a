"""A device that is not there: tensors that say they are on it, and whose numbers are in the memory of the CPU.

PyTorch's fake tensors have no numbers, so that what branches on them cannot be run. These have; any operation on
tensors of this device and of the CPU together is refused, as a GPU refuses it. The device is called meta, for which
PyTorch asks for no driver.
"""

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

DEVICE = torch.device("meta")
MAY_MIX = {  # which take indices of the CPU, or copy
    torch.ops.aten.index.Tensor,
    torch.ops.aten.index_put_.default,
    torch.ops.aten.copy_.default,
    torch.ops.aten._to_copy.default,
}


class OnDevice(torch.Tensor):
    numbers: torch.Tensor

    @staticmethod
    def __new__(cls, numbers: torch.Tensor) -> "OnDevice":
        layout = {"strides": numbers.stride(), "storage_offset": numbers.storage_offset(), "dtype": numbers.dtype}
        made = torch.Tensor._make_wrapper_subclass(cls, numbers.shape, device=DEVICE, **layout)
        made.numbers = numbers
        return made

    def tolist(self) -> Any:
        return self.numbers.tolist()

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(func, args, kwargs or {})


def _run(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
    ours = [tensor for tensor in tensors if isinstance(tensor, OnDevice)]
    others = [tensor for tensor in tensors if not isinstance(tensor, OnDevice) and tensor.dim() > 0]
    if ours and others and func not in MAY_MIX:
        raise RuntimeError(f"{func} of tensors on the device and on the CPU")
    if func is torch.ops.aten.index.Tensor and not isinstance(args[0], OnDevice) and ours:
        raise RuntimeError("indices on the device of a tensor on the CPU")
    device = kwargs.get("device")
    here = torch.device(device) == DEVICE if device is not None else bool(ours)
    plain = {name: value for name, value in kwargs.items() if name != "device"}
    if device is not None:
        plain["device"] = torch.device("cpu")
    bare = tree_map(lambda leaf: leaf.numbers if isinstance(leaf, OnDevice) else leaf, (args, plain))
    if func is torch.ops.aten._to_copy.default:
        bare = ((bare[0][0].clone(), *bare[0][1:]), bare[1])  # another device is another memory
    found = func(*bare[0], **bare[1])
    if func._schema.name.endswith("_") and isinstance(args[0], torch.Tensor):
        return args[0]
    return tree_map(lambda leaf: OnDevice(leaf) if here and isinstance(leaf, torch.Tensor) else leaf, found)


class PretendedGpu(TorchDispatchMode):
    """Within it, tensors can be made on DEVICE and moved there."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(func, args, kwargs or {})
