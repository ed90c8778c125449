#!/usr/bin/env python3
"""Draws transfers for curl: short and long, downloads and uploads, over IPv4 and IPv6, several of each pair of hosts.

Usage: transfers.py CONNECTIONS SEED FOLDER UPLOAD_FILE

Writes LISTS files FOLDER/N.curl, each for one curl with --parallel.
"""
import random
import sys

LISTS = 3
HOSTS = (1, 2, 3)
# Bytes of the served files and how often each is asked for, of 100; the rest are uploads.
DOWNLOADS = ((300, 20), (1400, 22), (9000, 28), (60000, 17), (250000, 3))
CLOSED_BY_SERVER, SLOW, GIVEN_UP = 0.75, 0.06, 0.02


def transfer(chance, upload):
    """The options of one transfer."""
    near, far = chance.choice(HOSTS), chance.choice(HOSTS)
    if chance.random() < 0.5:
        near, far = f"192.0.2.1{near}", f"192.0.2.8{far}"
    else:
        near, far = f"2001:db8::1{near}", f"[2001:db8::8{far}]"
    options = [f'interface = "{near}"', 'output = "/dev/null"', "connect-timeout = 20", "max-time = 60"]
    if chance.random() < CLOSED_BY_SERVER:
        options.append('header = "Connection: close"')
    draw = chance.randrange(100)
    for size, share in DOWNLOADS:
        if draw < share:
            slow = "slow/" if size > 1400 and chance.random() < SLOW else ""
            if size > 9000 and chance.random() < GIVEN_UP:
                options[-2 if "header" in options[-1] else -1] = f"max-time = {chance.choice((0.1, 0.2, 0.4))}"
            return [f'url = "http://{far}/{slow}{size}"', *options]
        draw -= share
    return [f'url = "http://{far}/form"', f'data-binary = "@{upload}"', 'header = "Expect:"', *options]


def main():
    connections, seed, folder, upload = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
    chance = random.Random(seed)
    # Some transfers share a connection, so a third more of them are drawn than connections are wanted.
    transfers = [transfer(chance, upload) for _ in range(connections * 4 // 3)]
    for number in range(LISTS):
        with open(f"{folder}/{number}.curl", "w", encoding="ascii") as file:
            file.write("\nnext\n".join("\n".join(options) for options in transfers[number::LISTS]) + "\n")


main()
