"""GPU memory that did not suffice."""

from __future__ import annotations

from runyard.domain.failures.categories import Category
from runyard.domain.failures.signature import Signature, advice

_OOM = Category.GPU_OOM
AT_START = "at_start"  # already the context did not fit: somebody else holds the memory
SEARCH_EXHAUSTED = "search_exhausted"  # the program itself went down to batch size zero
DISGUISED = "disguised"  # most often memory, but not said so

# fmt: off
# One signature, one line, with its sample as long as it is: a table.
SIGNATURES = (
    Signature(_OOM, "CUDA out of memory. Tried to allocate", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.21 GiB is free.", confidence=0.99),
    Signature(_OOM, "torch.OutOfMemoryError", "torch.OutOfMemoryError: Allocation on device 0 would exceed allowed memory. (out of memory)", confidence=0.98),
    Signature(_OOM, "torch.cuda.OutOfMemoryError", "torch.cuda.OutOfMemoryError: Allocation on device would exceed allowed memory.", confidence=0.98),
    Signature(_OOM, "larger than the available KV cache memory", "ValueError: To serve at least one request with the models's max seq len (131072), (16.00 GiB KV cache is needed, which is larger than the available KV cache memory (9.15 GiB).", confidence=0.95),
    Signature(_OOM, ("Not enough memory.", "--mem-fraction-static"), "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.", confidence=0.95),
    Signature(_OOM, "CUDA error: out of memory", "RuntimeError: CUDA error: out of memory", confidence=0.97, variant=AT_START),
    Signature(_OOM, "cudaMalloc failed: out of memory", "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 4096.00 MiB on device 0: cudaMalloc failed: out of memory", confidence=0.97),
    Signature(_OOM, ("Cuda failure", "'out of memory'"), "Last error: Cuda failure 2 'out of memory'", confidence=0.95),
    Signature(_OOM, "cudaErrorMemoryAllocation", "RuntimeError: CUDA failure 2: out of memory ; cudaErrorMemoryAllocation ; GPU=0", confidence=0.97),
    Signature(_OOM, "CUBLAS_STATUS_ALLOC_FAILED", "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`", confidence=0.95),
    Signature(_OOM, "CUBLAS_STATUS_NOT_INITIALIZED", "RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`", confidence=0.75, variant=DISGUISED),
    Signature(_OOM, "CUDNN_STATUS_ALLOC_FAILED", "RuntimeError: cuDNN error: CUDNN_STATUS_ALLOC_FAILED", confidence=0.95),
    Signature(_OOM, "Unable to find a valid cuDNN algorithm to run convolution", "RuntimeError: Unable to find a valid cuDNN algorithm to run convolution", confidence=0.85, variant=DISGUISED),
    Signature(_OOM, "was unable to find an engine to execute this computation", "RuntimeError: GET was unable to find an engine to execute this computation", confidence=0.75, variant=DISGUISED),
    Signature(_OOM, "RESOURCE_EXHAUSTED: Out of memory while trying to allocate", "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 17179869184 bytes.", confidence=0.99),
    Signature(_OOM, "RESOURCE_EXHAUSTED: Out of memory", "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory allocating 9663676416 bytes.", confidence=0.97),
    Signature(_OOM, "Failed to allocate request for", "RESOURCE_EXHAUSTED: Failed to allocate request for 2.13GiB (2286944256B) on device ordinal 0", confidence=0.95),
    Signature(_OOM, ("OOM when allocating tensor with shape", "GPU"), "OOM when allocating tensor with shape[64,512,56,56] and type float on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc", confidence=0.98),
    Signature(_OOM, "ResourceExhaustedError", "tensorflow.python.framework.errors_impl.ResourceExhaustedError: Graph execution error:", confidence=0.9),
    Signature(_OOM, "No executable batch size found, reached zero", "RuntimeError: No executable batch size found, reached zero.", confidence=0.99, variant=SEARCH_EXHAUSTED),
    Signature(_OOM, "CUDA_ERROR_OUT_OF_MEMORY", "numba.cuda.cudadrv.driver.CudaAPIError: [2] Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY", confidence=0.95),
    Signature(_OOM, "Out of memory error on GPU", "Out of memory error on GPU 0. Cannot allocate 1.250000GB memory on GPU 0, 15.7GB memory has been allocated", confidence=0.97),
    Signature(_OOM, "HIP out of memory", "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 1.50 GiB. GPU 0 has a total capacity of 63.98 GiB", confidence=0.99),
    Signature(_OOM, "hipErrorOutOfMemory", "RuntimeError: HIP error: out of memory (hipErrorOutOfMemory)", confidence=0.97, variant=AT_START),
    Signature(_OOM, "MPS backend out of memory", "RuntimeError: MPS backend out of memory (MPS allocated: 17.75 GB, other allocations: 1.21 MB, max allowed: 18.13 GB).", confidence=0.99),
    Signature(_OOM, "XPU out of memory", "torch.OutOfMemoryError: XPU out of memory. Tried to allocate 3.00 GiB (GPU 0; 15.11 GiB total capacity)", confidence=0.99),
    Signature(_OOM, "cupy.cuda.memory.OutOfMemoryError", "cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 8,589,934,592 bytes (allocated so far: 0 bytes).", confidence=0.98),
    Signature(_OOM, "std::bad_alloc: out_of_memory: CUDA error", "MemoryError: std::bad_alloc: out_of_memory: CUDA error at: rmm/mr/device/cuda_memory_resource.hpp", confidence=0.98),
    Signature(_OOM, "No available memory for the cache blocks", "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.", confidence=0.9),
    Signature(_OOM, "Resource exhausted: Out of memory", "Execution of replica 0 failed: Resource exhausted: Out of memory while trying to allocate 5520758552 bytes.", confidence=0.97),
    Signature(_OOM, "Ran out of memory in memory space", "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space hbm. Used 21.90G of 7.48G hbm.", confidence=0.97),
    Signature(_OOM, ("RESOURCE_EXHAUSTED: Attempting to", "memory"), "RESOURCE_EXHAUSTED: Attempting to reserve 6.48G at the bottom of memory. That was not possible.", confidence=0.95),
    Signature(_OOM, "Dst tensor is not initialized", "InternalError: Failed copying input tensor from CPU:0 to GPU:0 in order to run _EagerConst: Dst tensor is not initialized.", confidence=0.9, variant=DISGUISED),
    Signature(_OOM, ("Free memory on device", "is less than desired GPU memory utilization"), "ValueError: Free memory on device (5.21/79.1 GiB) on startup is less than desired GPU memory utilization (0.9, 71.2 GiB).", confidence=0.95, variant=AT_START),
    advice("by rematerialization; only reduced to", "W0626 05:14:36.398764 2048 hlo_rematerialization.cc:3005] Can't reduce memory use below 10.42GiB by rematerialization; only reduced to 15.61GiB"),
    advice("ran out of memory trying to allocate", "W tensorflow/core/common_runtime/bfc_allocator.cc:482] Allocator (GPU_0_bfc) ran out of memory trying to allocate 392.00MiB", 0.6),
    advice("If reserved but unallocated memory is large try setting", "If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.", 0.5),
)
