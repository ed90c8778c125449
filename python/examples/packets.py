"""The sizes of the first packets of the connection with the most bytes.

Usage: packets.py CAPTURE
"""

import sys

import netsniff


def main(capture: str) -> None:
    conn = netsniff.read(capture, log="conn")
    largest = max(conn, key=lambda row: row["resp_bytes"] or 0)
    print(largest["uid"], largest["id.orig_h"], largest["id.resp_h"], largest["quality"])
    with netsniff.packets(capture, largest["uid"]) as packets:
        for number, packet in enumerate(packets, 1):
            print(packet.time_ns, packet.orig_len, len(packet))
            if number == 5:
                break


if __name__ == "__main__":
    main(sys.argv[1])
