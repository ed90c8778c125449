# shellcheck shell=bash
# What scripts need that talk to brokers of Kafka: `kafka_setup WHAT [COMMAND]...` sets kafka_jars and kafka_clients, or says that WHAT is
# skipped, and ends.

kafka_setup() {
    local what=$1 command clients
    shift
    for command in java mvn python3 "$@"; do
        command -v "$command" >/dev/null || { echo "SKIPPED: $command: $what"; exit 0; }
    done
    kafka_jars=$PWD/target/kafka-broker
    if ! cmp -s scripts/kafka/pom.xml "$kafka_jars/pom.xml"; then
        rm -rf "$kafka_jars"
        mkdir -p "$kafka_jars"
        # Its own files beside the project go to target/, too.
        if ! timeout 300 mvn -q -B -f scripts/kafka/pom.xml dependency:copy-dependencies -DoutputDirectory="$kafka_jars" \
            >"$kafka_jars/log" 2>&1; then
            tail -n 5 "$kafka_jars/log"
            echo "SKIPPED: Maven Central: $what"
            exit 0
        fi
        cp scripts/kafka/pom.xml "$kafka_jars/pom.xml"
    fi
    clients=(confluent-kafka==2.16.1 fastavro==1.13.1 duckdb==2.0.1)
    kafka_clients=$PWD/target/kafka-clients
    if [ ! -e "$kafka_clients/${clients[*]// /-}" ]; then
        rm -rf "$kafka_clients"
        python3 -m pip install --quiet --disable-pip-version-check --root-user-action ignore --only-binary :all: \
            --target "$kafka_clients" "${clients[@]}"
        touch "$kafka_clients/${clients[*]// /-}"
    fi
}
