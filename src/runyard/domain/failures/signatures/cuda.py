"""Faults of kernels and of GPUs."""

from __future__ import annotations

import re

from runyard.domain.failures.categories import Category
from runyard.domain.failures.signature import Signature, advice, cascade

_FAULT, _HW = Category.CUDA_FAULT, Category.GPU_HW
XID = "xid"  # which one decides what it means
UNSURE = "unsure"  # hardware or driver, not proven

# fmt: off
# One signature, one line, with its sample as long as it is: a table.
SIGNATURES = (
    Signature(_FAULT, "an illegal memory access was encountered", "RuntimeError: CUDA error: an illegal memory access was encountered", confidence=0.95),
    Signature(_FAULT, "misaligned address", "RuntimeError: CUDA error: misaligned address", confidence=0.95, pattern=re.compile(r"(?i)cuda|device")),
    Signature(_FAULT, "unspecified launch failure", "RuntimeError: CUDA error: unspecified launch failure", confidence=0.95),
    Signature(_FAULT, "the launch timed out and was terminated", "RuntimeError: CUDA error: the launch timed out and was terminated", confidence=0.95),
    Signature(_FAULT, "CUDA error: an illegal instruction was encountered", "RuntimeError: CUDA error: an illegal instruction was encountered", confidence=0.93),
    Signature(_FAULT, "CUDA_ERROR_ILLEGAL_ADDRESS", "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered", confidence=0.96),
    Signature(_FAULT, "CUDA_ERROR_LAUNCH_FAILED", "could not synchronize on CUDA context: CUDA_ERROR_LAUNCH_FAILED: unspecified launch failure", confidence=0.96),
    Signature(_FAULT, "CUBLAS_STATUS_EXECUTION_FAILED", "RuntimeError: CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasGemmEx`", confidence=0.93),
    Signature(_FAULT, "CUBLAS_STATUS_INTERNAL_ERROR", "RuntimeError: CUDA error: CUBLAS_STATUS_INTERNAL_ERROR when calling `cublasSgemm`", confidence=0.9),
    Signature(_FAULT, "CUDNN_STATUS_EXECUTION_FAILED", "RuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED", confidence=0.93),
    Signature(_FAULT, "CUDNN_STATUS_INTERNAL_ERROR", "RuntimeError: cuDNN error: CUDNN_STATUS_INTERNAL_ERROR", confidence=0.85),
    Signature(_FAULT, "CUDNN_STATUS_MAPPING_ERROR", "RuntimeError: cuDNN error: CUDNN_STATUS_MAPPING_ERROR", confidence=0.9),
    Signature(_FAULT, "_STATUS_EXECUTION_FAILED", "cusolver error: CUSOLVER_STATUS_EXECUTION_FAILED, when calling `cusolverDnSgesvdj`", confidence=0.9),
    Signature(_FAULT, "_STATUS_INTERNAL_ERROR", "cuFFT error: CUFFT_STATUS_INTERNAL_ERROR", confidence=0.85),
    Signature(_FAULT, "CUDA unknown error", "RuntimeError: CUDA unknown error - this may be due to an incorrectly set up environment", confidence=0.85, variant=UNSURE),
    Signature(_FAULT, "CUDA error: unknown error", "RuntimeError: CUDA error: unknown error", confidence=0.85, variant=UNSURE),
    Signature(_FAULT, "invalid access of peer GPU memory", "RuntimeError: CUDA error: invalid access of peer GPU memory over nvlink or a hardware error", confidence=0.9, variant=UNSURE),
    Signature(_FAULT, "HSA_STATUS_ERROR", "HSA_STATUS_ERROR_EXCEPTION: An HSAIL operation resulted in a hardware exception. code: 0x1016", confidence=0.85),
    Signature(_FAULT, "Memory access fault by GPU node", "Memory access fault by GPU node-1 (Agent handle: 0x55d0) on address 0x7f00. Reason: Page not present or supervisor privilege.", confidence=0.93),
    Signature(_FAULT, "Triton Error [CUDA]: an illegal", "RuntimeError: Triton Error [CUDA]: an illegal memory access was encountered", confidence=0.95),
    Signature(Category.CODE_DATA, "device-side assert triggered", "RuntimeError: CUDA error: device-side assert triggered", confidence=0.96),
    Signature(Category.CODE_DATA, ("Assertion `", "` failed."), "/pytorch/aten/src/ATen/native/cuda/Loss.cu:250: nll_loss_forward_reduce_cuda_kernel_2d: block: [0,0,0], thread: [5,0,0] Assertion `t >= 0 && t < n_classes` failed.", confidence=0.97, pattern=re.compile(r"\.cuh?:\d{1,6}: ")),
    Signature(Category.CODE_DATA, "CUDA_ERROR_ASSERT", "CUDA_ERROR_ASSERT: device-side assert triggered", confidence=0.96),
    Signature(_HW, "uncorrectable ECC error encountered", "RuntimeError: CUDA error: uncorrectable ECC error encountered", confidence=0.99),
    Signature(_HW, "CUDA_ERROR_ECC_UNCORRECTABLE", "CUDA_ERROR_ECC_UNCORRECTABLE: uncorrectable ECC error encountered", confidence=0.99),
    Signature(_HW, "GPU has fallen off the bus", "NVRM: GPU at PCI:0000:81:00: GPU has fallen off the bus.", confidence=0.99),
    Signature(_HW, "GPU is lost", "Unable to determine the device handle for GPU 0000:3B:00.0: GPU is lost.  Reboot the system to recover this GPU", confidence=0.98),
    Signature(_HW, "Unable to determine the device handle for GPU", "Unable to determine the device handle for GPU0000:C1:00.0: Unknown Error", confidence=0.97),
    Signature(_HW, "NVRM: Xid (", "NVRM: Xid (PCI:0000:41:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.", confidence=0.95, variant=XID),
    Signature(_HW, "SXid (PCI:", "nvidia-nvswitch0: SXid (PCI:0000:c4:00.0): 20034, Fatal, Link 38 LTSSM Fault Up", confidence=0.95),
    Signature(_HW, "CUDA error: hardware stack error", "RuntimeError: CUDA error: hardware stack error", confidence=0.9),
    Signature(_HW, "CUDA_ERROR_NVLINK_UNCORRECTABLE", "CUDA_ERROR_NVLINK_UNCORRECTABLE: uncorrectable NVLink error detected during the execution", confidence=0.98),
    Signature(_HW, "uncorrectable NVLink error detected", "RuntimeError: CUDA error: uncorrectable NVLink error detected during the execution", confidence=0.98),
    Signature(Category.GPU_BUSY, "all CUDA-capable devices are busy or unavailable", "RuntimeError: CUDA error: all CUDA-capable devices are busy or unavailable", confidence=0.97),
    Signature(Category.GPU_BUSY, ("CUDA-capable device(s) is/are busy or unavailable",), "RuntimeError: CUDA error: CUDA-capable device(s) is/are busy or unavailable", confidence=0.97),
    Signature(Category.CONFIG, "invalid device ordinal", "RuntimeError: CUDA error: invalid device ordinal", confidence=0.96),
    Signature(Category.CODE, "Cannot re-initialize CUDA in forked subprocess", "RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the 'spawn' start method", confidence=0.98),
    cascade("operation failed due to a previous error during capture", "RuntimeError: CUDA error: operation failed due to a previous error during capture"),
    cascade("operation not permitted when stream is capturing", "RuntimeError: CUDA error: operation not permitted when stream is capturing", 0.6),
    cascade("CUDA error: driver shutting down", "RuntimeError: CUDA error: driver shutting down"),
    advice("CUDA kernel errors might be asynchronously reported", "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect."),
    advice("CUDA_LAUNCH_BLOCKING=1", "For debugging consider passing CUDA_LAUNCH_BLOCKING=1"),
    advice("TORCH_USE_CUDA_DSA", "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions."),
    advice("Row Remapper: New row marked for remapping, reset gpu to activate", "NVRM: GPU at PCI:0000:07:00: Row Remapper: New row marked for remapping, reset gpu to activate."),
)
