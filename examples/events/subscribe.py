#!/usr/bin/env python3
"""Prints the events of a coordinator:  subscribe.py URL [TOPIC]...

By pynng where it is installed, else through the library libnng alone. A message is a topic, a blank and a line of JSON
(docs/events.md). What was lost is said on standard error.
"""
import json
import sys

SILENCE_MS = 4000  # a stream says every second that it lives


def messages_of_pynng(url, topics):
    import pynng  # an ImportError is the caller's question

    with pynng.Sub0(recv_timeout=SILENCE_MS, recv_buffer_size=1024) as socket:
        for topic in topics:
            socket.subscribe(topic)
        socket.dial(url)
        while True:
            try:
                yield socket.recv()
            except pynng.Timeout:
                yield None


def messages_of_library(url, topics):
    """The same by ctypes: what nng's header calls nng_socket is a struct of one number."""
    import ctypes
    import ctypes.util

    class Socket(ctypes.Structure):
        _fields_ = [("id", ctypes.c_uint32)]

    timed_out = 5  # NNG_ETIMEDOUT
    nng = ctypes.CDLL(ctypes.util.find_library("nng") or "libnng.so.1")
    nng.nng_strerror.restype = ctypes.c_char_p
    nng.nng_socket_set.argtypes = [Socket, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t]
    nng.nng_socket_set_int.argtypes = [Socket, ctypes.c_char_p, ctypes.c_int]
    nng.nng_socket_set_ms.argtypes = [Socket, ctypes.c_char_p, ctypes.c_int32]
    nng.nng_dial.argtypes = [Socket, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int]
    nng.nng_recvmsg.argtypes = [Socket, ctypes.POINTER(ctypes.c_void_p), ctypes.c_int]
    nng.nng_msg_body.argtypes = nng.nng_msg_len.argtypes = nng.nng_msg_free.argtypes = [ctypes.c_void_p]
    nng.nng_msg_body.restype = ctypes.c_void_p
    nng.nng_msg_len.restype = ctypes.c_size_t

    def check(code):
        if code:
            raise OSError(f"{url}: {nng.nng_strerror(code).decode()}")

    socket = Socket()
    check(nng.nng_sub0_open(ctypes.byref(socket)))
    for topic in topics:
        check(nng.nng_socket_set(socket, b"sub:subscribe", topic, len(topic)))
    check(nng.nng_socket_set_int(socket, b"recv-buffer", 1024))
    check(nng.nng_socket_set_ms(socket, b"recv-timeout", SILENCE_MS))
    check(nng.nng_dial(socket, url.encode(), None, 0))
    while True:
        message = ctypes.c_void_p()
        code = nng.nng_recvmsg(socket, ctypes.byref(message), 0)
        if code == timed_out:
            yield None
            continue
        check(code)
        body = ctypes.string_at(nng.nng_msg_body(message), nng.nng_msg_len(message))
        nng.nng_msg_free(message)
        yield body


def messages(url, topics):
    try:
        import pynng  # noqa: F401
    except ImportError:
        return messages_of_library(url, topics)
    return messages_of_pynng(url, topics)


def main():
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    url, wanted, last = sys.argv[1], [topic.encode() for topic in sys.argv[2:]], 0
    for message in messages(url, wanted + [b"stream/"] if wanted else [b""]):
        if message is None:
            print("silence", file=sys.stderr, flush=True)
            continue
        line = message.partition(b" ")[2].decode()
        event = json.loads(line)
        alive = event.get("alive")
        seq = (alive or event)["seq"]
        lost_to = seq if alive else seq - 1
        if not wanted and last and lost_to > last:  # with topics the numbers of others are missing, too
            print(f"gap {last + 1} {lost_to}", file=sys.stderr, flush=True)
        last = max(last, seq)
        if not alive:
            print(line, flush=True)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (KeyboardInterrupt, BrokenPipeError):
        sys.exit(130)
