"""Codes about the devices that kernels run on; they say nothing of a file."""

from ninfer_core.findings.definition import Definition, advisory

KERNELS: tuple[Definition, ...] = (
    advisory(
        "kernels.failed_over",
        None,
        "A GPU failed during the work, and the processor answered in its place. The answer is the same: kernels fail over "
        "only to kernels that are held to the same oracle, word for word.",
        "A driver that was reset or lost its device, memory that other programs took, or a GPU that is breaking.",
        "Nothing has to be done for this result. Run `ninfer-gate selfcheck` for the device before you trust it again.",
        where="device, kernel: what failed",
    ),
)
