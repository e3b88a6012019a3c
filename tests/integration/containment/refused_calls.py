"""System calls that a kernel or container refuses: a filter on this process and its children."""

import ctypes
import errno
import os

_NUMBERS = {"pidfd_send_signal": 424, "pidfd_open": 434}  # the same on every architecture
_UNSHARE = {"x86_64": 272, "aarch64": 97}
_LOAD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_REFUSE, _ALLOW = 0x00050000, 0x7FFF0000
_PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS, _MODE_FILTER = 22, 38, 2


class _Instruction(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_uint16),
        ("if_true", ctypes.c_uint8),
        ("if_false", ctypes.c_uint8),
        ("value", ctypes.c_uint32),
    )


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint16), ("first", ctypes.POINTER(_Instruction)))


def without_pidfds():
    """As a kernel before 5.3."""
    _refuse(_NUMBERS.values(), errno.ENOSYS)


def without_user_namespaces():
    """As Docker's default profile."""
    _refuse([_UNSHARE[os.uname().machine]], errno.EPERM)


def _refuse(numbers, error):
    instructions = [_Instruction(_LOAD, 0, 0, 0)]
    for number in numbers:
        instructions.append(_Instruction(_JUMP_IF_EQUAL, 0, 1, number))
        instructions.append(_Instruction(_RETURN, 0, 0, _REFUSE | error))
    instructions.append(_Instruction(_RETURN, 0, 0, _ALLOW))
    program = _Program(len(instructions), (_Instruction * len(instructions))(*instructions))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(
        _PR_SET_SECCOMP, _MODE_FILTER, ctypes.addressof(program), 0, 0
    ):
        raise OSError(ctypes.get_errno(), "no filter can be set")
