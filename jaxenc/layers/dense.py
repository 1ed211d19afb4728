"""Matrix products, with and without a bias."""

from flax import linen as nn
from jax import Array

from jaxenc.execution import Execution
from jaxenc.layers import initializers
from jaxenc.layers.initializers import Initializer


class Dense(nn.Module):
    """x · kernel + bias, with kernel [in, features].

    names: the logical axes of the kernel. The bias carries the last of them, except where that is the model's width (`embed`):
    vectors as wide as the model stay whole (`norm`), since splitting them saves nothing and costs a gather.
    """

    features: int
    names: tuple[str | None, str | None]
    init_kernel: Initializer
    execution: Execution
    init_bias: Initializer = initializers.zeros

    @nn.compact
    def weights(self, inputs: int) -> tuple[Array, Array]:
        """(kernel [inputs, features], bias [features]) in the compute dtype, for callers that multiply several kernels as one."""
        policy = self.execution.policy
        last = "norm" if self.names[1] == "embed" else self.names[1]
        kernel = self.param("kernel", nn.with_logical_partitioning(self.init_kernel, self.names), (inputs, self.features), policy.params)
        bias = self.param("bias", nn.with_logical_partitioning(self.init_bias, (last,)), (self.features,), policy.params)
        return kernel.astype(policy.compute), bias.astype(policy.compute)

    def __call__(self, x: Array) -> Array:
        """[..., in] to [..., features] in the compute dtype."""
        kernel, bias = self.weights(x.shape[-1])
        return x.astype(kernel.dtype) @ kernel + bias


class Kernel(nn.Module):
    """The kernel of a product without a bias. names: its logical axes."""

    features: int
    names: tuple[str | None, str | None]
    init_kernel: Initializer
    execution: Execution

    @nn.compact
    def __call__(self, inputs: int) -> Array:
        """[inputs, features] in the compute dtype."""
        policy = self.execution.policy
        start = nn.with_logical_partitioning(self.init_kernel, self.names)
        return self.param("kernel", start, (inputs, self.features), policy.params).astype(policy.compute)
