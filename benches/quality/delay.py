#!/usr/bin/env python3
"""Wires with a delay: carries every frame between two interfaces, both ways, in order, and loses none.

Usage: delay.py "LEFT RIGHT MILLISECONDS"...

Runs until it is killed. Whether it lost nothing is seen from the counters of the interfaces around it.
"""
import collections
import select
import socket
import struct
import sys
import time

SOL_PACKET, ADD_MEMBERSHIP, PROMISCUOUS, IGNORE_OUTGOING = 263, 1, 1, 23  # linux/if_packet.h
SO_RCVBUFFORCE = 33  # asm-generic/socket.h
ALL_FRAMES, RECEIVE_BUFFER = 3, 64 << 20
BURST = 64  # Frames taken from one end before the others have their turn.


def open_end(interface):
    """A socket for all frames that arrive at an interface, with room for those of a slow moment."""
    end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL_FRAMES))
    end.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, RECEIVE_BUFFER)
    end.setsockopt(SOL_PACKET, IGNORE_OUTGOING, 1)
    end.bind((interface, ALL_FRAMES))
    membership = struct.pack("IHH8s", socket.if_nametoindex(interface), PROMISCUOUS, 0, b"")
    end.setsockopt(SOL_PACKET, ADD_MEMBERSHIP, membership)
    end.setblocking(False)
    return end


def take(end, line, delay):
    """Puts what has arrived at an end on the line to the other one."""
    for _ in range(BURST):
        try:
            frame = end.recv(65535)
        except OSError:  # Nothing more for now, or the interface went down at the end.
            return
        line.append((time.monotonic() + delay, frame))


def main():
    lines = {}  # From the end where frames arrive: the end that they leave by, the delay, and what is under way.
    for wire in sys.argv[1:]:
        left, right, delay_ms = wire.split()
        left, right, delay = open_end(left), open_end(right), float(delay_ms) / 1000
        lines[left] = (right, delay, collections.deque())
        lines[right] = (left, delay, collections.deque())
    while True:
        waiting = [line[0][0] for _, _, line in lines.values() if line]
        wait = max(0, min(waiting) - time.monotonic()) if waiting else None
        for end in select.select(list(lines), [], [], wait)[0]:
            _, delay, line = lines[end]
            take(end, line, delay)
        now = time.monotonic()
        for other, _, line in lines.values():
            while line and line[0][0] <= now:
                other.send(line.popleft()[1])


main()
