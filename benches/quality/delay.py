#!/usr/bin/env python3
"""Wires with a delay: carries every frame between two interfaces, both ways, in order, and loses none.

Usage: delay.py [--late PERCENT] [--doubled PERCENT] [--jitter MILLISECONDS] [--seed N] [--doubles FILE]
                "LEFT RIGHT MILLISECONDS"...

  --late, --doubled   so many frames come behind others by at most the jitter (1 ms), and so many come twice
  --doubles           gets a byte for each frame that came twice

Runs until it is killed. Whether it lost nothing is seen from the counters of the interfaces around it.
"""
import argparse
import heapq
import itertools
import random
import select
import socket
import struct
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


class Line:
    """What is under way to one end, by the time at which it arrives."""

    numbers = itertools.count()

    def __init__(self, other, delay, options):
        self.other, self.delay, self.options, self.frames = other, delay, options, []

    def add(self, frame):
        """Puts a frame on the line, and perhaps another one like it."""
        due, chance, jitter = time.monotonic() + self.delay, self.options.chance, self.options.jitter / 1000
        is_doubled = chance.random() * 100 < self.options.doubled
        late = chance.random() * jitter if chance.random() * 100 < self.options.late else 0
        self.put(due + late, frame)
        if is_doubled:
            self.put(due + late + chance.random() * jitter, frame)
            self.options.told.write(b"2")

    def put(self, due, frame):
        heapq.heappush(self.frames, (due, next(self.numbers), frame))

    def take(self, end):
        """Takes what has arrived at an end."""
        for _ in range(BURST):
            try:
                self.add(end.recv(65535))
            except OSError:  # Nothing more for now, or the interface went down at the end.
                return

    def deliver(self):
        """Sends what has come to the other end by now."""
        now = time.monotonic()
        while self.frames and self.frames[0][0] <= now:
            self.other.send(heapq.heappop(self.frames)[2])


def options():
    parser = argparse.ArgumentParser()
    for name in ("--late", "--doubled"):
        parser.add_argument(name, type=float, default=0)
    parser.add_argument("--jitter", type=float, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--doubles", default="/dev/null")
    parser.add_argument("wires", nargs="+")
    found = parser.parse_args()
    found.chance = random.Random(found.seed)
    found.told = open(found.doubles, "ab", buffering=0)
    return found


def main():
    found = options()
    lines = {}  # From the end where frames arrive.
    for wire in found.wires:
        left, right, delay_ms = wire.split()
        left, right, delay = open_end(left), open_end(right), float(delay_ms) / 1000
        lines[left], lines[right] = Line(right, delay, found), Line(left, delay, found)
    while True:
        waiting = [line.frames[0][0] for line in lines.values() if line.frames]
        wait = max(0, min(waiting) - time.monotonic()) if waiting else None
        for end in select.select(list(lines), [], [], wait)[0]:
            lines[end].take(end)
        for line in lines.values():
            line.deliver()


main()
