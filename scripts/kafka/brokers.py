"""Brokers of Kafka on this machine, for as long as a script runs, and what they have."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

# What is started ends by then, whatever becomes of this script.
MOST_SECONDS = 900
CLUSTER = "bmV0c25pZmYtdGVzdHMtMQ"
USER, PASSWORD = "sensor", "right-Word.1"


def free_ports(count):
    """Ports that nobody listens on."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Broker:
    """A broker with its storage, which outlives it. The first one of a cluster is the controller, too."""

    def __init__(self, number, jars, place, controller, settings=(), host="127.0.0.1", certificate=None):
        self.number, self.jars, self.place = number, jars, Path(place)
        self.place.mkdir(parents=True)
        self.process = None
        port, plain, tls = free_ports(3)
        self.address = f"{host}:{port}"
        self.sasl_address, self.tls_address = f"{host}:{plain}", f"{host}:{tls}"
        self.controller = controller or f"{host}:{free_ports(1)[0]}"
        listeners = {"PLAINTEXT": self.address, "SASL_PLAINTEXT": self.sasl_address}
        if certificate:
            listeners["SASL_SSL"] = self.tls_address
        is_controller = controller is None
        lines = {
            "process.roles": "broker,controller" if is_controller else "broker",
            "node.id": number,
            "controller.quorum.voters": f"1@{self.controller}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": ",".join(f"{name}:{name}" for name in listeners) + ",CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "PLAINTEXT",
            "advertised.listeners": ",".join(f"{name}://{at}" for name, at in listeners.items()),
            "log.dirs": self.place / "data",
            "auto.create.topics.enable": "false",
            "offsets.topic.replication.factor": 1,
            "offsets.topic.num.partitions": 1,
            "group.initial.rebalance.delay.ms": 0,
            # A broker that is gone is found out within seconds.
            "broker.session.timeout.ms": 3000,
            "broker.heartbeat.interval.ms": 500,
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        }
        if is_controller:
            listeners["CONTROLLER"] = self.controller
        lines["listeners"] = ",".join(f"{name}://{at}" for name, at in listeners.items())
        modules = "org.apache.kafka.common.security"
        for name in ("sasl_plaintext", "sasl_ssl"):
            lines[f"listener.name.{name}.plain.sasl.jaas.config"] = (
                f'{modules}.plain.PlainLoginModule required user_{USER}="{PASSWORD}";'
            )
            for kind in ("scram-sha-256", "scram-sha-512"):
                lines[f"listener.name.{name}.{kind}.sasl.jaas.config"] = f"{modules}.scram.ScramLoginModule required;"
        if certificate:
            lines |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": certificate}
        lines |= dict(settings)
        self.properties = self.place / "server.properties"
        self.properties.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
        users = [
            word
            for kind in ("SCRAM-SHA-256", "SCRAM-SHA-512")
            for word in ("--add-scram", f"{kind}=[name={USER},password={PASSWORD}]")
        ]
        self._java(
            "kafka.tools.StorageTool", "format", "-t", CLUSTER, "-c", self.properties, *(users if is_controller else [])
        )

    def _command(self, *words):
        memory = ["-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        return ["timeout", "-k", "5", str(MOST_SECONDS), "java", *memory, "-cp", f"{self.jars}/*", *map(str, words)]

    def _java(self, *words):
        done = subprocess.run(self._command(*words), capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"{words[0]} failed:\n{done.stdout}{done.stderr}")

    def start(self, namespace=None):
        """Starts it, and waits until it answers."""
        command = self._command("kafka.Kafka", self.properties)
        if namespace:
            command = ["ip", "netns", "exec", namespace, *command]
        log = open(self.place / "output", "ab")  # noqa: SIM115
        # In a session of its own, so that it can be ended with all that it started.
        self.process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        log.close()
        if namespace is None:
            self.wait()

    def wait(self):
        """Waits until it answers."""
        end = time.monotonic() + 60
        while time.monotonic() < end and self.process.poll() is None:
            with contextlib.suppress(KafkaException):
                told = self.admin().list_topics(timeout=2)
                if self.number in told.brokers:
                    return
            time.sleep(0.2)
        sys.exit(f"broker {self.number} does not answer:\n{(self.place / 'output').read_text()[-3000:]}")

    def kill(self):
        """Ends it as the kernel ends a process for want of memory."""
        if self.process:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None

    def admin(self):
        """A client that sets up topics."""
        return AdminClient({"bootstrap.servers": self.address, "log_level": 0, "socket.timeout.ms": 5000})

    def create(self, topic, partitions=1, replicas=1, **settings):
        """Makes a topic."""
        config = {name.replace("_", "."): str(value) for name, value in settings.items()}
        admin = self.admin()
        made = admin.create_topics([NewTopic(topic, partitions, replicas, config=config)])
        made[topic].result(30)


def read(addresses, topics=None):
    """All records of all topics, or of some, up to where these end now: pairs of topic and message."""
    end = time.monotonic() + 60
    while True:
        try:
            return read_once(addresses, topics)
        except KafkaException as error:
            # A broker that has just begun is no leader yet.
            if time.monotonic() > end:
                sys.exit(f"records cannot be read: {error}")
            time.sleep(0.2)


def read_once(addresses, topics):
    """The same, unless a broker is not ready."""
    consumer = Consumer({
        "bootstrap.servers": addresses,
        "group.id": "reader",
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "log_level": 0,
    })
    found = []
    try:
        told = consumer.list_topics(timeout=20).topics
        partitions = [
            TopicPartition(name, number, 0)
            for name, topic in told.items()
            if not name.startswith("__") and (topics is None or name in topics)
            for number in topic.partitions
        ]
        ends = {(one.topic, one.partition): consumer.get_watermark_offsets(one, timeout=20)[1] for one in partitions}
        consumer.assign(partitions)
        missing = sum(ends.values())
        end = time.monotonic() + 60
        while missing > 0:
            if time.monotonic() > end:
                sys.exit(f"{missing} records cannot be read")
            for message in consumer.consume(1000, timeout=1):
                if message.error():
                    continue
                found.append((message.topic(), message))
                missing -= 1
    finally:
        consumer.close()
    return found
