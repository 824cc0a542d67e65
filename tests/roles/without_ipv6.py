"""Runs a program without IPv6, as on a kernel with ipv6.disable=1: socket(AF_INET6) fails with EAFNOSUPPORT."""

import ctypes
import os
import platform
import struct
import sys

SOCKET = {"x86_64": 41, "aarch64": 198}[platform.machine()]
LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, ERROR = 0x7FFF0000, 0x00050000
AF_INET6, EAFNOSUPPORT = 10, 97
# Offsets of the number of the call and of its first argument.
CALL, FIRST = 0, 16

program = b"".join(
    struct.pack("HBBI", *instruction)
    for instruction in [
        (LOAD, 0, 0, CALL),
        (JUMP_IF_EQUAL, 0, 3, SOCKET),
        (LOAD, 0, 0, FIRST),
        (JUMP_IF_EQUAL, 0, 1, AF_INET6),
        (RETURN, 0, 0, ERROR | EAFNOSUPPORT),
        (RETURN, 0, 0, ALLOW),
    ]
)


class Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("program", ctypes.c_char_p)]


libc = ctypes.CDLL(None, use_errno=True)
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
filter = Filter(len(program) // 8, program)
for arguments in [(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(filter))]:
    if libc.prctl(*arguments) != 0:
        raise OSError(ctypes.get_errno(), "prctl")
os.execvp(sys.argv[1], sys.argv[1:])
