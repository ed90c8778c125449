#!/usr/bin/env python3
"""Lists what a netsniff program is made of, in CycloneDX 1.5 (JSON): packaging/sbom.py TARGET >FILE

TARGET is the triple that the program is built for, as x86_64-unknown-linux-musl. Components are the crates that are linked into the
program or run as macros while it is compiled, with licence, purl, and the SHA-256 of Cargo.lock, and which of them needs which. The same
tree gives the same bytes: the time is that of SOURCE_DATE_EPOCH, and the serial number is made of the content.

It fails where a crate has no licence, or comes from a registry without a checksum.
"""

import datetime
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tomllib
import uuid

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = "netsniff"


def metadata(target: str) -> dict:
    # Macros run on the machine that compiles.
    host = subprocess.run(["rustc", "--print", "host-tuple"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", target, "--filter-platform", host]
    return json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)


def linked(target: str) -> set:
    """Names and versions of the crates that the program is made of, with the features that it is built with. cargo metadata has those of
    the whole workspace, which may be more."""
    command = ["cargo", "tree", "--locked", "-p", PROGRAM, "-e", "normal", "--target", target, "--prefix", "none", "--format", "{p}"]
    lines = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    words = [line.split() for line in lines if line]
    return {(name, version.removeprefix("v")) for name, version, *_ in words}


def component(package: dict, checksums: dict) -> dict:
    name, version = package["name"], package["version"]
    licence = package["license"] or sys.exit(f"{name} {version} has no licence")
    told = {
        "type": "library",
        "bom-ref": f"pkg:cargo/{name}@{version}",
        "name": name,
        "version": version,
        "scope": "required",
        "licenses": [{"expression": licence.replace("/", " OR ")}],
        "purl": f"pkg:cargo/{name}@{version}",
    }
    if package["source"]:
        checksum = checksums.get((name, version)) or sys.exit(f"{name} {version} has no checksum in Cargo.lock")
        told["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    return told


def main(target: str) -> None:
    facts = metadata(target)
    packages = {package["id"]: package for package in facts["packages"]}
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())
    checksums = {(p["name"], p["version"]): p.get("checksum") for p in lock["package"]}
    root = next(id for id, p in packages.items() if p["name"] == PROGRAM and not p["source"])
    wanted = linked(target)
    parts = {
        id: component(package, checksums)
        for id, package in packages.items()
        if (package["name"], package["version"]) in wanted
    }
    if len(parts) != len(wanted):
        sys.exit("two packages have one name and version, or cargo tree names one that cargo metadata does not have")
    nodes = {node["id"]: node for node in facts["resolve"]["nodes"]}
    is_normal = lambda dep: any(kind["kind"] is None for kind in dep["dep_kinds"])
    needs = {id: {dep["pkg"] for dep in nodes[id]["deps"] if is_normal(dep) and dep["pkg"] in parts} for id in parts}
    ref = lambda id: parts[id]["bom-ref"]
    program = parts[root] | {"type": "application"}
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH", 0))
    bom = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": datetime.datetime.fromtimestamp(epoch, datetime.UTC).isoformat().replace("+00:00", "Z"),
            "component": program,
            "properties": [{"name": "netsniff:target", "value": target}],
        },
        "components": sorted((parts[id] for id in parts if id != root), key=lambda part: part["bom-ref"]),
        "dependencies": sorted(
            ({"ref": ref(id), "dependsOn": sorted(map(ref, needs[id]))} for id in needs), key=lambda it: it["ref"]
        ),
    }
    digest = hashlib.sha256(json.dumps(bom, sort_keys=True).encode()).digest()
    bom["serialNumber"] = f"urn:uuid:{uuid.UUID(bytes=digest[:16], version=4)}"
    print(json.dumps(bom, indent=1))


if __name__ == "__main__":
    sys.exit(__doc__) if len(sys.argv) != 2 else main(sys.argv[1])
