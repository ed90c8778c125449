#!/usr/bin/env python3
"""Hosts that need nothing but Python: a client asks for numbers of bytes, a server sends them.

Usage: hosts.py server|client CONNECTIONS SEED

The server listens on every address and runs until it is killed; the client ends when all connections have.
"""
import random
import socket
import sys
import threading

PORT, AT_ONCE, PATIENCE = 8080, 20, 8
SIZES = (200, 1400, 9000, 40000, 120000)


def receive(connection, wanted):
    """Reads so many bytes, or fewer where the other side ends."""
    got = 0
    while got < wanted:
        data = connection.recv(min(65536, wanted - got))
        if not data:
            return
        got += len(data)


def serve(connection, closes):
    """Answers one request: a line with the bytes that follow it and the bytes that are wanted."""
    with connection:
        connection.settimeout(PATIENCE)
        with connection.makefile("rb") as lines:
            sent, wanted = (int(word) for word in lines.readline().split())
            lines.read(sent)
        connection.sendall(b"x" * wanted)
        if not closes:
            connection.recv(1)


def server(seed):
    """Serves for ever, a thread each; every other time it closes first."""
    listener = socket.create_server(("::", PORT), family=socket.AF_INET6, dualstack_ipv6=True, backlog=256)
    chance = random.Random(seed)
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=quietly, args=(serve, connection, chance.random() < 0.5), daemon=True).start()


def ask(near, far, sent, wanted):
    """One connection."""
    with socket.create_connection((far, PORT), timeout=PATIENCE, source_address=(near, 0)) as connection:
        connection.sendall(b"%d %d\n" % (sent, wanted) + b"y" * sent)
        receive(connection, wanted)


def quietly(function, *arguments):
    """A connection may fail where the path loses too much; that is no failure of ours."""
    try:
        function(*arguments)
    except (OSError, ValueError):
        pass


def client(connections, seed):
    """Asks, with some connections at once."""
    chance = random.Random(seed)
    free = threading.Semaphore(AT_ONCE)

    def run(arguments):
        quietly(ask, *arguments)
        free.release()

    threads = []
    for _ in range(connections):
        near, far = chance.randint(1, 3), chance.randint(1, 3)
        ends = (f"192.0.2.1{near}", f"192.0.2.8{far}") if chance.random() < 0.5 else (f"2001:db8::1{near}", f"2001:db8::8{far}")
        upload = chance.random() < 0.3
        arguments = (*ends, chance.choice(SIZES) if upload else 60, 100 if upload else chance.choice(SIZES))
        free.acquire()
        threads.append(threading.Thread(target=run, args=(arguments,)))
        threads[-1].start()
    for thread in threads:
        thread.join()


if sys.argv[1] == "server":
    server(int(sys.argv[3]))
else:
    client(int(sys.argv[2]), int(sys.argv[3]))
