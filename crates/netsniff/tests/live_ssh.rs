//! `netsniff lab` between two machines, which are two namespaces here. Needs root and OpenSSH; says so where they are
//! missing.

use std::fs;

use serde_json::Value;

mod lab_bed;
mod ssh_bed;

use lab_bed::alone;
use ssh_bed::{Machines, NETSNIFF, WIRE, until};

/// Arguments of a lab whose other machine is as it should be.
const THERE: [&str; 8] = [
    "--sender",
    "ssh://far",
    "--sender-interface",
    WIRE[0],
    "--sender-program",
    NETSNIFF,
    "--interface",
    WIRE[1],
];

/// Runs a sweep into a directory, and gives its runs.
fn sweep(machines: &Machines, name: &str, arguments: &[&str]) -> Vec<Value> {
    let output = machines.directory.join(name);
    let mut command = machines.lab("sweep");
    command.args(THERE).args(["--repeat", "1", "-o"]).arg(&output).args(arguments);
    let out = command.output().unwrap();
    let errors = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.success(), "{errors}");
    let runs = fs::read_to_string(output.join("runs.jsonl")).unwrap();
    runs.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The sender's interface, the receiver's and the tools agree to the packet.
#[test]
fn two_machines_count_to_the_packet() {
    let _alone = alone();
    let Some(machines) = Machines::make("two_machines_count_to_the_packet") else { return };
    let sizes = ["--sizes", "128,512", "--rates", "5k", "--time", "1s"];
    let tools = ["--tools", "record,tcpdump", "--send", "flows=1,9"];
    let runs = sweep(&machines, "counted", &[&sizes[..], &tools].concat());
    assert!(runs.len() >= 4, "{runs:?}");
    for run in &runs {
        let trial = &run["trial"];
        let faults = trial["faults"].as_array().unwrap();
        // Other programs may hold the sender up.
        assert!(faults.iter().all(|fault| fault == "slips" || fault == "rate"), "{run}");
        assert!(trial["sent"].as_u64().unwrap() > 1000, "{run}");
        for counted in [&trial["arrived"], &trial["counted"]["captured"]] {
            assert_eq!(*counted, trial["sent"], "{run}");
        }
        assert_eq!(trial["counted"]["dropped"], 0, "{run}");
    }
    let head = fs::read(machines.directory.join("counted/sweep.json")).unwrap();
    let head: Value = serde_json::from_slice(&head).unwrap();
    assert_eq!(head["sender"]["netsniff"], env!("CARGO_PKG_VERSION"));
    assert_eq!(head["sender"]["kernel"], head["machine"]["kernel"]);
    assert_eq!(head["testbed"]["wire"]["sender"], "ssh://far");
    let page = fs::read_to_string(machines.directory.join("counted/sweep.html")).unwrap();
    assert!(page.contains("a wire from w0 of ssh://far to w1 of this machine"));
    assert!(page.contains("kernel of the sender"));
    until("all has ended there", || machines.running_there().is_empty());
    assert_eq!(machines.files_there(), 0);
}
