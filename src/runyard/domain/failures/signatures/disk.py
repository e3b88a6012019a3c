"""Disks that are full, broken or gone, and checkpoints that cannot be read."""

from __future__ import annotations

from runyard.domain.failures.categories import Category
from runyard.domain.failures.signature import Signature, advice

_FULL, _BAD, _OTHER = Category.DISK_FULL, Category.CKPT_CORRUPT, Category.CKPT_MISMATCH
WHILE_SAVING = "while_saving"  # the file just written is not whole

# fmt: off
# One signature, one line, with its sample as long as it is: a table.
SIGNATURES = (
    Signature(_FULL, "No space left on device", "OSError: [Errno 28] No space left on device: '/out/checkpoint-500/optimizer.pt'", confidence=0.97),
    Signature(_FULL, "Disk quota exceeded", "OSError: [Errno 122] Disk quota exceeded: '/home/ml/run1/model.bin'", confidence=0.98),
    Signature(_FULL, "PytorchStreamWriter failed writing file", "RuntimeError: [enforce fail at inline_container.cc:603] . PytorchStreamWriter failed writing file data/42: file write failed", confidence=0.93, variant=WHILE_SAVING),
    Signature(_FULL, ("inline_container.cc", "unexpected pos"), "RuntimeError: [enforce fail at inline_container.cc:626] . unexpected pos 704 vs 598", confidence=0.88, variant=WHILE_SAVING),
    Signature(_FULL, "basic_ios::clear: iostream error", "RuntimeError: basic_ios::clear: iostream error", confidence=0.85, variant=WHILE_SAVING),
    Signature(_FULL, "SafetensorError: Error while serializing: IoError", "safetensors_rust.SafetensorError: Error while serializing: IoError(Os { code: 28, kind: StorageFull, message: \"No space left on device\" })", confidence=0.98, variant=WHILE_SAVING),
    Signature(_FULL, "database or disk is full", "sqlite3.OperationalError: database or disk is full", confidence=0.97),
    Signature(_FULL, "Not enough free disk space to download", "UserWarning: Not enough free disk space to download the file. The expected file size is: 9976.58 MB.", confidence=0.8),
    Signature(_FULL, ("Not enough disk space",), "OSError: Not enough disk space. Needed: 55.20 GiB (download: 12.10 GiB, generated: 43.10 GiB, post-processed: Unknown size)", confidence=0.97),
    Signature(_FULL, ("write failed", "errno = 28"), "OSError: [Errno 28] Can't synchronously write data (file write failed: filename = 'w.h5', file descriptor = 5, errno = 28, error message = 'No space left on device')", confidence=0.98),
    Signature(Category.STORAGE, "Read-only file system", "OSError: [Errno 30] Read-only file system: '/scratch/run'", confidence=0.95, variant="read_only"),
    Signature(Category.STORAGE, "Input/output error", "OSError: [Errno 5] Input/output error: '/mnt/nfs/train/0007.tar'", confidence=0.93),
    Signature(Category.STORAGE, "Stale file handle", "OSError: [Errno 116] Stale file handle: '/mnt/data/idx.bin'", confidence=0.97),
    Signature(Category.STORAGE, "Transport endpoint is not connected", "OSError: [Errno 107] Transport endpoint is not connected: '/mnt/gcs/shards'", confidence=0.95),
    Signature(Category.STORAGE, "No locks available", "OSError: [Errno 37] No locks available", confidence=0.93),
    Signature(Category.STORAGE, "Remote I/O error", "OSError: [Errno 121] Remote I/O error: '/lustre/data/0.bin'", confidence=0.95),
    Signature(_BAD, "Unpack failed: incomplete input", "ValueError: Unpack failed: incomplete input", confidence=0.95),
    Signature(_BAD, ("Error opening", "driver: Metadata at", "does not exist"), "ValueError: NOT_FOUND: Error opening \"zarr\" driver: Metadata at local file \"/ckpt/100/a/.zarray\" does not exist", confidence=0.93),
    Signature(_OTHER, "mismatch between the current graph and the graph from the checkpoint", "Restoring from checkpoint failed. This is most likely due to a mismatch between the current graph and the graph from the checkpoint.", confidence=0.97),
    Signature(Category.STORAGE, "unable to lock file, errno", "BlockingIOError: [Errno 11] Unable to synchronously open file (unable to lock file, errno = 11, error message = 'Resource temporarily unavailable')", confidence=0.95),
    Signature(_BAD, "PytorchStreamReader failed", "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory", confidence=0.98),
    Signature(_BAD, ("unexpected EOF, expected", "more bytes. The file might be corrupted"), "RuntimeError: unexpected EOF, expected 4194304 more bytes. The file might be corrupted.", confidence=0.98),
    Signature(_BAD, "Error while deserializing header:", "safetensors_rust.SafetensorError: Error while deserializing header: MetadataIncompleteBuffer", confidence=0.98),
    Signature(_BAD, "UnpicklingError", "_pickle.UnpicklingError: pickle data was truncated", confidence=0.93),
    Signature(_BAD, "EOFError: Ran out of input", "EOFError: Ran out of input", confidence=0.92),
    Signature(_BAD, "invalid load key, '", "_pickle.UnpicklingError: invalid load key, '\\x00'.", confidence=0.94),
    Signature(_BAD, "File is not a zip file", "zipfile.BadZipFile: File is not a zip file", confidence=0.75, general=True),
    Signature(_BAD, "Bad CRC-32 for file", "zipfile.BadZipFile: Bad CRC-32 for file 'archive/data/17'", confidence=0.93),
    Signature(_BAD, "Invalid magic number; corrupt file?", "RuntimeError: Invalid magic number; corrupt file?", confidence=0.97),
    Signature(_BAD, "storage has wrong byte size", "RuntimeError: storage has wrong byte size: expected 2097152 got 1048576", confidence=0.95),
    Signature(_BAD, ("nable to", "truncated file: eof"), "OSError: Unable to synchronously open file (truncated file: eof = 96, sblock->base_addr = 0, stored_eof = 2048)", confidence=0.96),
    Signature(_BAD, "file signature not found", "OSError: Unable to synchronously open file (file signature not found)", confidence=0.93),
    Signature(_BAD, "DataLossError", "tensorflow.python.framework.errors_impl.DataLossError: Checksum does not match: stored 3251837 vs. calculated on the restored bytes 87163", confidence=0.96),
    Signature(_BAD, "Unable to open table file", "DATA_LOSS: not an sstable (bad magic number): perhaps your file is in a different file format: Unable to open table file /ckpt/model-100", confidence=0.93),
    Signature(Category.CODE, "Weights only load failed", "_pickle.UnpicklingError: Weights only load failed. This file can still be loaded, to do so you have two options", confidence=0.98, variant="weights_only"),
    Signature(_OTHER, "Error(s) in loading state_dict for", "RuntimeError: Error(s) in loading state_dict for ResNet:", confidence=0.97),
    Signature(_OTHER, "Missing key(s) in state_dict", "    Missing key(s) in state_dict: \"head.weight\", \"head.bias\".", confidence=0.95),
    Signature(_OTHER, ("size mismatch for", "copying a param with shape"), "size mismatch for fc.weight: copying a param with shape torch.Size([1000, 512]) from checkpoint, the shape in current model is torch.Size([10, 512]).", confidence=0.97),
    Signature(_OTHER, "loaded state dict contains a parameter group that doesn't match the size of optimizer's group", "ValueError: loaded state dict contains a parameter group that doesn't match the size of optimizer's group", confidence=0.97),
    Signature(_OTHER, "loaded state dict has a different number of parameter groups", "ValueError: loaded state dict has a different number of parameter groups", confidence=0.97),
    Signature(_OTHER, ("A total of", "objects could not be loaded"), "ValueError: A total of 2 objects could not be loaded. Example error message for object <Dense name=dense>:", confidence=0.93),
    Signature(Category.CKPT_MISSING, "Can't find a valid checkpoint at", "ValueError: Can't find a valid checkpoint at ./out/checkpoint-500", confidence=0.97),
    Signature(Category.CKPT_MISSING, "No valid checkpoint found in output directory", "ValueError: No valid checkpoint found in output directory (./out)", confidence=0.97),
    Signature(Category.CKPT_MISSING, ("Checkpoint", "not found. Aborting training"), "FileNotFoundError: Checkpoint at /out/last.ckpt not found. Aborting training.", confidence=0.96),
    advice(("do not match the ones in the", "trainer_state.json"), "Warning: The following arguments do not match the ones in the `trainer_state.json` within the checkpoint directory: per_device_train_batch_size: 8 (from args) != 16 (from trainer_state.json)"),
)
