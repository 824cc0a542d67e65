"""Calls methods on a socket over one channel, as Python's gRPC makes it by default: SOCKET METHOD...

Sends empty messages and prints each response in hex. Any failure ends it with the status.
"""

import sys

import grpc

socket, *methods = sys.argv[1:]
with grpc.insecure_channel(f"unix://{socket}") as channel:
    for method in methods:
        print(channel.unary_unary(method)(b"", timeout=20).hex())
