//! `netsniff lab compare` as a user runs it, on reports that are written here.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

/// A directory of its own, removed at the end.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let name = format!("netsniff-lab-compare-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    fn file(&self, report: &str, name: &str, text: &str) {
        fs::create_dir_all(self.0.join(report)).unwrap();
        fs::write(self.0.join(report).join(name), text).unwrap();
    }

    /// A report of `lab sweep`.
    fn sweep(&self, report: &str, kernel: &str, runs: &[Value]) {
        let lines: String = runs.iter().map(|run| format!("{run}\n")).collect();
        self.file(report, "runs.jsonl", &lines);
        self.file(report, "sweep.json", &head(kernel).to_string());
    }

    /// A report of `lab lossless`.
    fn lossless(&self, report: &str, kernel: &str, cells: &[Value]) {
        let mut all = head(kernel);
        all["cells"] = json!(cells);
        self.file(report, "lossless.json", &serde_json::to_string_pretty(&all).unwrap());
    }

    /// Compares two parts of what is here: exit code, output and errors.
    fn compare(&self, a: &str, b: &str, options: &[&str]) -> (i32, String, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_netsniff"))
            .args(["lab", "compare", &self.path(a), &self.path(b)])
            .args(options)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    }

    fn fine(&self, a: &str, b: &str, options: &[&str]) -> String {
        let (code, output, errors) = self.compare(a, b, options);
        assert_eq!((code, errors.as_str()), (0, ""), "{output}");
        output
    }

    fn json(&self, a: &str, b: &str) -> Value {
        serde_json::from_str(&self.fine(a, b, &["--json"])).unwrap()
    }

    /// What `-o` writes: the page, and the lines of CSV as fields.
    fn report(&self, a: &str, b: &str, name: &str) -> (String, Vec<Vec<String>>) {
        let text = self.fine(a, b, &["-o", &self.path(name)]);
        assert_eq!(text, self.fine(a, b, &[]), "what is printed stays the same");
        let read = |file: &str| fs::read_to_string(self.0.join(name).join(file)).unwrap();
        assert_eq!(read("compare.json"), self.fine(a, b, &["--json"]));
        let csv = read("compare.csv");
        let fields = |line: &str| line.split(',').map(str::to_owned).collect();
        (read("compare.html"), csv.lines().map(fields).collect())
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn head(kernel: &str) -> Value {
    json!({
        "netsniff": "0.1.0",
        "command": ["netsniff", "lab"],
        "machine": {
            "kernel": kernel, "processor": "Z80", "processors": 2, "memory": 65536, "hypervisor": null,
            "clocksource": "tsc", "sysctls": [["net.core.netdev_budget", "300"]], "versions": [],
        },
        "testbed": {"placement": "rps", "quota": null},
        "left_out": [],
    })
}

fn trial(tool: &str, (size, rate): (u32, Option<u32>), captured: u32, cpu: u32) -> Value {
    json!({
        "tool": tool, "load": {"size": size, "rate": rate, "seconds": 10.0},
        "sent": 1_000_000, "reached": rate.unwrap_or(800_000), "stalls": 0, "slipped_ns": 0, "arrived": 1_000_000,
        "backlog_dropped": 0,
        "counted": {"captured": captured, "dropped": 0, "unexplained": 0, "books": {"polls": 1000}},
        "processors": [], "cpu_ns": u64::from(captured) * u64::from(cpu), "memory_peak": 1_000_000,
        "memory_mean": 1_000_000, "ring_share": 0.05, "is_burst": false, "ended": true, "faults": [],
    })
}

/// Runs of a point, one for each number of packets that were captured of a million, with the time that each took.
fn runs(tool: &str, wait: Option<&str>, rate: u32, of: &[(u32, u32)]) -> Vec<Value> {
    let settings = wait.map(|value| json!({"name": "wait", "value": value}));
    let settings: Vec<_> = settings.into_iter().collect();
    let run = |(number, (captured, cpu)): (usize, &(u32, u32))| {
        let trial = trial(tool, (64, Some(rate)), *captured, *cpu);
        let point = json!({
            "tool": tool, "settings": settings, "load": trial["load"], "repetition": number,
        });
        json!({"point": point, "trial": trial})
    };
    of.iter().enumerate().map(run).collect()
}

/// A search that found this; at a rate that a tenth is more something was lost.
fn cell(tool: &str, size: u32, found: Value) -> Value {
    let rate = found["rate"].as_f64().map(|rate| (rate * 1.1) as u32);
    let mut step = trial(tool, (size, rate), 999_999, 100);
    step["purpose"] = json!("steer");
    json!({
        "tool": tool, "size": size, "found": found, "confirmed": 0, "loss_below": null, "ended": null,
        "steps": [step],
    })
}

fn rate(rate: f64) -> Value {
    json!({"is": "rate", "rate": rate})
}

const QUICK: [(u32, u32); 3] = [(900_000, 410), (880_000, 395), (830_000, 402)];
const SLOW: [(u32, u32); 3] = [(780_000, 350), (690_000, 361), (740_000, 355)];

/// `scipy.stats.ttest_ind(b, a, equal_var=False).confidence_interval(0.95)` of the losses in percent, and with
/// `numpy.exp` of that of `numpy.log` of the times.
#[test]
fn two_tools_of_a_report_are_compared() {
    let here = Directory::new("tools");
    let all = [runs("record", None, 1000, &QUICK), runs("count", None, 1000, &SLOW)].concat();
    here.sweep("r", "Linux 6.1", &all);
    let text = here.fine("r:record", "r:count", &[]);
    assert!(text.contains("from record to count\n"), "{text}");
    // Columns are as wide as what stands in them.
    let rows: Vec<_> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    let has = |row: &str| rows.iter().any(|cells: &Vec<_>| cells.join(" ").ends_with(row));
    assert!(has(" 13.000 26.333 +13.333 3, 3 +3.899 to +22.768 *"), "{text}");
    assert!(has(" 402.3 355.3 -11.68 3, 3 -15.09 to -8.13 *"), "{text}");
    assert!(text.contains("unavailable: the repetitions do not differ\n"), "{text}");
    assert!(text.contains("Of 3 intervals of points from their spread, 3 do not have"), "{text}");
    assert!(text.contains("about 0.2 would not, by chance"), "{text}");
    assert!(!text.contains("Left out") && !text.contains("also differ"), "{text}");
    let json = here.json("r:record", "r:count");
    let change = &json["groups"][0]["rows"][0]["compared"][0]["change"];
    assert!((change["interval"]["low"].as_f64().unwrap() - 0.038991552980409766).abs() < 1e-9);
    assert_eq!(
        (&change["interval"]["by"], &change["is_significant"]),
        (&json!("welch"), &json!(true))
    );
    assert_eq!((&json["of"], &json["a"]["tool"]), (&json!("sweep"), &json!("record")));
    let tables = here.fine("r:record", "r:count", &["-q"]);
    assert!(text.contains(&tables) && tables.starts_with("\nfrom record to count\n"), "{tables}");
}

#[test]
fn values_of_a_setting_are_compared_and_what_has_no_partner_is_left_out() {
    let here = Directory::new("settings");
    let all = [
        runs("count", Some("poll"), 1000, &QUICK),
        runs("count", Some("adaptive"), 1000, &[(1_000_000, 100), (1_000_000, 100)]),
        runs("count", Some("poll"), 2000, &QUICK),
    ];
    let mut faulty = runs("count", Some("adaptive"), 1000, &[(5, 5)]);
    faulty[0]["trial"]["faults"] = json!(["slips"]);
    let mut useless = runs("count", Some("adaptive"), 2000, &[(5, 5)]);
    useless[0]["trial"]["faults"] = json!(["rate"]);
    here.sweep("w", "Linux 6.1", &[all.concat(), faulty, useless].concat());
    let text = here.fine("w:wait=poll", "w:wait=adaptive", &[]);
    assert!(
        text.contains("B: count, 64 bytes, 2,000/s, 10 s: none of its runs (1) proves anything"),
        "{text}"
    );
    assert!(text.contains("prove nothing: 0 runs of A, 1 of B"), "{text}");
    assert!(text.contains("-13.000  3, 2  "), "{text}");
    assert!(text.contains("w, wait poll\nB  "), "{text}");

    here.sweep("v", "Linux 6.1", &runs("count", Some("poll"), 3000, &SLOW));
    let (code, output, errors) = here.compare("w:wait=poll", "v", &[]);
    assert_eq!(code, 1, "{output}{errors}");
    assert!(errors.contains("A and B have no point in common"), "{errors}");
    let line = "B: count, 64 bytes, 3,000/s, 10 s: A has no point to pair it with";
    assert!(output.contains(line), "{output}");
}

#[test]
fn rates_are_compared_with_bounds_and_the_machines_with_all_that_differs() {
    let here = Directory::new("rates");
    let published = [17.01, 3.49, 57.82, 20.14, 19.19, 11.15];
    let sizes = [64, 128, 256, 512, 1024, 1518];
    let a: Vec<_> = sizes.iter().map(|size| cell("record", *size, rate(250_000.0))).collect();
    let higher = |(size, percent): (&u32, f64)| {
        cell("record", *size, rate(250_000.0 * (1.0 + percent / 100.0)))
    };
    let b: Vec<_> = sizes.iter().zip(published).map(higher).collect();
    here.lossless("a", "Linux 5.10", &a);
    here.lossless("b", "Linux 6.1", &b);
    let text = here.fine("a", "b", &[]);
    assert!(text.contains("kernel: Linux 5.10; Linux 6.1\n"), "{text}");
    assert!(text.contains("B frames/s  improvement %  least to most %\n"), "{text}");
    for (percent, range) in [("+17.01", "+6.37 to +28.71 *"), ("+3.49", "-5.92 to +13.84\n")] {
        assert!(text.contains(&format!("{percent}  {range}")), "{text}");
    }
    assert!(text.contains("arithmetic mean of 6") && text.contains("+21.47  "), "{text}");
    assert!(text.contains("geometric mean of 6") && text.contains("+20.37  "), "{text}");

    let limits =
        [json!({"is": "at-least", "rate": 500_000.0}), json!({"is": "below", "rate": 1000.0})];
    let [least, below] = limits.map(|found| cell("count", 64, found));
    let ended = json!({"is": "ended"});
    let others = [least, cell("count", 128, rate(250_000.0)), cell("count", 256, ended)];
    here.lossless("c", "Linux 6.1", &[&others[..], &[cell("count", 999, rate(1.0))]].concat());
    let text = here.fine("a:record", "c", &[]);
    assert!(text.contains(">= 500,000     >= +100.00  +81.82 or more *\n"), "{text}");
    assert!(text.contains("unavailable  B: no rate above 0\n"), "{text}");
    assert!(text.contains("arithmetic mean of 2") && text.contains(">= +50.00"), "{text}");
    assert!(text.contains("A: record, 512 bytes: B has no search to pair it with"), "{text}");
    assert!(text.contains("B: count, 999 bytes: A has no search to pair it with"), "{text}");
    here.lossless("d", "Linux 6.1", &[below]);
    let json = here.json("a:record", "d:count");
    let row = &json["groups"][0]["rows"][0];
    assert_eq!(
        row["improvement"],
        json!({"is": "at-most", "percent": 100.0 * (1000.0 / 250_000.0 - 1.0)})
    );
    assert_eq!((&row["range"][0], &json["left_out"][0]["side"]), (&Value::Null, &json!("A")));
}

/// A row of a table on a page.
fn row(cells: &[&str]) -> String {
    let cells = cells.iter().enumerate().map(|(at, cell)| {
        let class = if (1..4).contains(&at) { " class=\"number\"" } else { "" };
        format!("<td{class}>{cell}</td>")
    });
    format!("<tr>{}</tr>", cells.collect::<String>())
}

#[test]
fn rates_are_a_page_with_open_ends_and_csv() {
    let here = Directory::new("rates-page");
    let evil = "<b>a,\u{1b}[2J</b>";
    let a = [cell("record", 64, rate(250_000.0)), cell("record", 512, rate(200_000.0))];
    let least = json!({"is": "at-least", "rate": 500_000.0});
    let b = [cell("record", 64, least), cell("record", 512, rate(300_000.0))];
    let ended = cell("record", 999, json!({"is": "ended"}));
    let others = [cell(evil, 64, rate(1.0)), ended.clone()];
    here.lossless("a", "Linux 5.10 <x>", &[&a[..], &others].concat());
    here.lossless("b", "Linux 6.1", &[&b[..], &[ended]].concat());
    let (page, csv) = here.report("a", "b", "out");
    for text in [
        &row(&["64", "250,000", "&gt;= 500,000", "&gt;= +100.00", "+81.82 or more *"]),
        &row(&["512", "200,000", "300,000", "+50.00", "+36.36 to +65.00 *"]),
        &row(&["999", "unavailable", "unavailable", "unavailable", "A: no rate above 0"]),
        "geometric mean of 2",
        "+50.00 (+36.36 to +65.00)",
        "unavailable: A: no rate above 0",
        "Left out (1)",
        "Points that both have, and that are compared: 3; left out: 1.",
        "<td>kernel</td><td>Linux 5.10 &lt;x&gt;</td><td>Linux 6.1</td>",
        "<dt>command of A</dt><dd>netsniff lab</dd>",
        "<dt>clock</dt><dd>tsc</dd>",
        "Not drawn: values that are unknown (1)",
        "&lt;b&gt;a,\u{fffd}[2J&lt;/b&gt;",
    ] {
        assert!(page.contains(text), "{text} is not in {page}");
    }
    assert!(!page.contains("<b>") && !page.contains('\u{1b}'), "{page}");
    // Of both palettes: the arrows of the size and of both means.
    assert_eq!(page.matches("<polygon").count(), 2 * 3, "{page}");
    let names = "tool_a,tool_b,bytes,rate,seconds,settings,quantity,a_is,a,b_is,b,change_is,change,low,high,significant";
    assert_eq!(csv[0].join(","), names);
    let begin = ["record", "record", "64", "", "", "", "lossless-rate", "exactly", "250000"];
    assert_eq!(csv[1][..9], begin);
    assert_eq!(csv[1][9..13], ["at-least", "500000", "at-least", "1"]);
    assert!(csv[1][13].starts_with("0.81818") && csv[1][14].is_empty(), "{:?}", csv[1]);
    assert_eq!((csv[1][15].as_str(), csv[2][12].as_str()), ("true", "0.5"));
    assert!(csv[3][7..].iter().all(String::is_empty) && csv.len() == 4, "{csv:?}");
    let svg = "plots/compare-improvement-of-the-highest-rate-without-loss-record-dark.svg";
    assert!(here.0.join("out").join(svg).is_file());
    let (code, _, errors) = here.compare("a", "b", &["-o", &here.path("out")]);
    assert!(code == 1 && errors.contains("cannot make "), "{errors}");
}

#[test]
fn sweeps_are_a_page_with_intervals_of_each_quantity_and_csv() {
    let here = Directory::new("sweep-page");
    // More points than a plot has room for, with a single run of some.
    let points = |cpu: u32| -> Vec<Value> {
        let one = |rate: u32| runs("record", Some("a,\"b"), rate, &[(900_000, cpu)]);
        let many = |rate: u32| runs("record", None, rate, &[(900_000, cpu), (890_000, cpu + 2)]);
        (1..=20).flat_map(one).chain((1..=20).flat_map(many)).collect()
    };
    here.sweep("a", "Linux 6.1", &points(400));
    here.sweep("b", "Linux 6.1", &points(300));
    let (page, csv) = here.report("a", "b", "out");
    for text in [
        "Change of CPU ns/packet, record",
        "Change of loss %, record",
        "geometric mean of 40",
        "points behind the first ones, which the table has (12)",
        "intervals that are not known, of values that are (21)",
        "unavailable: a side has one repetition",
        "compared: 40; left out: 0. The machines and testbeds are the same",
        "64 bytes, 1/s, 10 s, wait a,&quot;b",
        "Of 60 intervals of points from their spread, 20 do not have",
    ] {
        assert!(page.contains(text), "{text} is not in {page}");
    }
    assert!(!page.contains("<h2>Left out") && !page.contains("also differ"), "{page}");
    // 28 points and a mean, of four quantities, in two palettes: two circles each.
    assert_eq!(page.matches("<circle").count(), 29 * 4 * 2 * 2, "{page}");
    assert_eq!(csv.len(), 1 + 40 * 4);
    let text = fs::read_to_string(here.0.join("out/compare.csv")).unwrap();
    assert!(text.contains("record,record,64,1,10,\"wait=a,\"\"b\",loss,exactly,"), "{text}");
    // Without repetitions there is no interval, and nothing is significant or not.
    assert!(text.lines().nth(1).unwrap().ends_with(",exactly,0,,,"), "{text}");
    let cpu = csv.iter().rfind(|fields| fields[6] == "cpu-ns-per-packet").unwrap();
    let number = |at: usize| cpu[at].parse::<f64>().unwrap();
    let ratio = (300.0_f64 * 302.0 / 400.0 / 402.0).sqrt();
    assert!((number(12) - (ratio - 1.0)).abs() < 1e-9, "{cpu:?}");
    assert!(number(13) < number(12) && number(12) < number(14) && cpu[15] == "true", "{cpu:?}");
    // A page tells what has no partner, where nothing has one.
    here.sweep("c", "Linux 6.1", &runs("count", None, 7, &QUICK));
    let (code, ..) = here.compare("a", "c", &["-o", &here.path("none")]);
    let page = fs::read_to_string(here.path("none/compare.html")).unwrap();
    assert!(code == 1 && page.contains("<h2>Left out (41)</h2>"), "{page}");
}

#[test]
fn what_else_may_be_the_reason_is_noted() {
    let here = Directory::new("notes");
    let mut low = cell("record", 64, rate(250_000.0));
    low["steps"][0]["reached"] = json!(240_000.0);
    here.lossless("a", "Linux 6.1", &[low]);
    here.lossless("b", "Linux 6.1", &[cell("record", 64, rate(300_000.0))]);
    let text = here.fine("a", "b", &[]);
    let note = "64 bytes, A: runs that lost something at no higher rate: 1\n";
    assert!(text.contains(note) && text.contains("+20.00  +32.00 or less\n"), "{text}");

    // Full speed is another load for each sender.
    let top = |reached: u32| {
        let mut runs = runs("record", None, 1000, &QUICK);
        for run in &mut runs {
            run["point"]["load"]["rate"] = Value::Null;
            run["trial"]["reached"] = json!(reached);
            run["trial"]["is_burst"] = json!(reached > 800_000);
        }
        runs
    };
    here.sweep("c", "Linux 6.1", &top(800_000));
    here.sweep("d", "Linux 6.1", &top(805_000));
    here.sweep("e", "Linux 6.1", &top(700_000));
    let text = here.fine("c", "d", &[]);
    assert!(
        text.contains("64 bytes, top, 10 s ") && !text.contains("frames/s were sent"),
        "{text}"
    );
    assert!(text.contains("hold much of: 0 of 3 runs of A, 3 of 3 of B\n"), "{text}");
    let text = here.fine("c", "e", &[]);
    let note = "64 bytes, top, 10 s: 800,000 frames/s were sent in A, 700,000 in B\n";
    assert!(text.contains(note) && !text.contains("hold much"), "{text}");
    let steering = "\u{1b}[2J";
    here.sweep("f", steering, &[runs(steering, None, 1000, &SLOW), top(800_000)].concat());
    let text = here.fine("c", "f", &[]);
    assert!(text.contains("kernel: Linux 6.1; \u{fffd}[2J") && !text.contains('\u{1b}'), "{text}");
    let [json, quiet] = [&["--json"][..], &["--json", "-q"]].map(|it| here.fine("c", "e", it));
    assert_eq!(json, quiet);
}

#[test]
fn what_cannot_be_read_is_said_with_its_place() {
    let here = Directory::new("broken");
    here.sweep("good", "Linux 6.1", &runs("count", None, 1000, &QUICK));
    let mut broken = runs("count", None, 1000, &QUICK);
    broken[1]["trial"].as_object_mut().unwrap().remove("sent");
    here.sweep("field", "Linux 6.1", &broken);
    here.sweep("empty", "Linux 6.1", &[]);
    here.lossless("search", "Linux 6.1", &[cell("count", 64, rate(1000.0))]);
    here.lossless("kind", "Linux 6.1", &[cell("count", 64, json!({"is": "perhaps", "rate": 1.0}))]);
    fs::create_dir(here.path("nothing")).unwrap();
    here.sweep("both", "Linux 6.1", &broken);
    here.lossless("both", "Linux 6.1", &[]);
    here.sweep("headless", "Linux 6.1", &runs("count", None, 1000, &SLOW));
    fs::remove_file(here.path("headless/sweep.json")).unwrap();
    for (other, expected, words) in [
        (
            "field",
            1,
            &["line 2 of ", "runs.jsonl is not of this version: missing field `sent`"][..],
        ),
        (
            "kind",
            1,
            &["lossless.json is no report of this version: unknown variant `perhaps`", "at line "],
        ),
        ("empty", 1, &["there is no whole run in ", "runs.jsonl"]),
        ("nothing", 1, &["has neither runs.jsonl of lab sweep nor lossless.json of lab lossless"]),
        ("both", 1, &["has both runs.jsonl and lossless.json"]),
        ("headless", 1, &["cannot read ", "sweep.json"]),
        ("missing:count", 1, &["there is no directory ", "missing;"]),
        ("search", 2, &["A is of lab sweep, and B is of lab lossless"]),
        ("good:pigeon", 2, &["there is no tool pigeon in B; there are count"]),
        ("good:ring=2M", 2, &["there is no setting ring in B; there are none"]),
        ("good:count:record", 2, &["record is a second tool"]),
        ("good:", 2, &["there is nothing after a colon"]),
        ("good", 2, &["A and B are the same"]),
    ] {
        let (code, output, errors) = here.compare("good", other, &[]);
        assert_eq!((code, output.as_str()), (expected, ""), "{other}: {errors}");
        for word in words {
            assert!(errors.contains(word), "{other}: {errors}");
        }
    }
    // What was cut when its writer was killed is left out.
    let lines: String =
        runs("count", None, 1000, &SLOW).iter().map(|run| format!("{run}\n")).collect();
    here.file("cut", "runs.jsonl", &lines[..lines.len() - 9]);
    here.file("cut", "sweep.json", &head("Linux 6.1").to_string());
    let (code, output, errors) = here.compare("good", "cut", &[]);
    assert!(code == 0 && output.contains(" 3, 2 "), "{output}");
    assert!(errors.contains("the last line of runs.jsonl in "), "{errors}");
    assert_eq!(here.compare("good", "cut", &["-q"]).2, "");
}
