//! Calibrations of a machine with costs that are planted, by a clock that only runs move.

use super::super::simulate::{Clock, Queues};
use super::*;

/// A machine that serves as a fit says, and takes so long for each run beside the time that frames are sent.
struct Planted {
    fit: Fit,
    around: Duration,
    /// How many of the first tries of a load are disturbed.
    disturbed: u32,
    /// The smallest frames of which they are.
    from_size: u32,
    /// By what share runs cost more than the fit says, or less.
    noise: f64,
    /// Nanoseconds that the machine stands still, of 100.
    still: u64,
    now: Duration,
    tries: u32,
    looks: u32,
    last: Option<Load>,
    said: Vec<String>,
}

const FIT: Fit = Fit {
    slower: 1.3,
    cold: 0.0,
    kept: [900.0, 1.2],
    frame: [1500.0, 0.4],
    wake: 2500.0,
    share: 0.5,
    spread: 0.01,
};

fn planted(around: u64) -> Planted {
    Planted {
        fit: FIT,
        around: Duration::from_millis(around),
        disturbed: 0,
        from_size: 0,
        noise: 0.0,
        still: 0,
        now: Duration::ZERO,
        tries: 0,
        looks: 0,
        last: None,
        said: Vec::new(),
    }
}

fn by_itself(cost: Cost, size: u32) -> f64 {
    f64::from(cost.zip.unwrap_or(0)) * (2000.0 + 3.0 * f64::from(size))
}

impl Host for Planted {
    fn elapsed(&self) -> Duration {
        self.now
    }

    fn stalls(&mut self) -> anyhow::Result<Stalls> {
        self.now += WATCHED;
        Ok(Stalls { watched: 100, lengths: vec![self.still] })
    }

    fn wakes(&mut self) -> anyhow::Result<Wakes> {
        self.now += WOKEN;
        Ok(Wakes { lengths: vec![20_000, 30_000, 90_000] })
    }

    fn raw(&mut self, cost: Cost, size: u32) -> anyhow::Result<Option<Raw>> {
        self.now += RAW;
        self.looks += 1;
        // Now and then one is slower.
        let slower = if self.looks.is_multiple_of(7) { 1.02 } else { 1.0 };
        let mean = by_itself(cost, size) * slower;
        Ok(cost.zip.map(|_| Raw { deviation: mean / 10.0, ..Raw::even(mean) }))
    }

    fn run(&mut self, tool: &Tool, load: &Load) -> anyhow::Result<Trial> {
        self.now += load.time + self.around;
        self.tries = if self.last.as_ref() == Some(load) { self.tries + 1 } else { 1 };
        self.last = Some(load.clone());
        let rate = load.rate.unwrap_or(800e3);
        let words = tool.words(Path::new("netsniff"), "rx0", Path::new("/"));
        let zip = words.iter().position(|word| word == "--zip");
        let zip = zip.map(|at| words[at + 1].parse().unwrap());
        let burst = load.options.iter().find(|option| option.name == "burst");
        let burst = burst.map_or(32, |burst| burst.value.parse().unwrap());
        let raw = by_itself(Cost { zip, delay: None }, load.size);
        // What is looked at less deeply costs less.
        let is_flat = words.iter().any(|word| word == "flows");
        let [each, byte] = self.fit.kept;
        let kept = if is_flat { [each / 2.0, byte / 2.0] } else { [each, byte] };
        let by = if self.looks % 5 < 2 { 1.0 + self.noise } else { 1.0 - self.noise };
        let costs = Fit { kept, ..self.fit }.costs(load.size, raw, 0.0).times(by);
        let served = costs.served(rate, burst);
        let sent = rate * load.time.as_secs_f64();
        let room = Queues::new(RING, 0, Clock::Steady).frames(load.size);
        let captured = (served * load.time.as_secs_f64() + room).min(sent) as u64;
        let mut trial = Trial {
            sent: sent as u64,
            arrived: sent as u64,
            reached: Some(rate),
            ..Trial::default()
        };
        trial.counted.captured = Some(captured);
        let is_its = load.rate.is_some() && load.size >= self.from_size;
        if self.tries <= self.disturbed && is_its {
            trial.faults.push(trial::Fault::Wire);
        }
        Ok(trial)
    }

    fn progress(&mut self, text: &str) {
        self.said.push(text.to_owned());
    }
}

fn of(host: &mut Planted, tool: &str) -> anyhow::Result<Model> {
    with(host, tool, &[])
}

fn with(host: &mut Planted, tool: &str, variants: &[Vec<Setting>]) -> anyhow::Result<Model> {
    let tool = Tool::all().into_iter().find(|one| one.name == tool).unwrap();
    let layout = Layout::default();
    calibrate_on(host, Subject { tool: &tool, layout: &layout, variants, traffic: None }, 1000)
}

#[track_caller]
fn finds_what_is_planted(model: &Model, by: f64) {
    for (size, burst, raw) in [(512, 32, 9000.0), (900, 1, 20_000.0), (256, 8, 5000.0)] {
        let [found, planted] = [model.fit, FIT].map(|fit| fit.costs(size, raw, 0.0).knee(burst));
        assert!((found / planted - 1.0).abs() < by, "{found}, not {planted}: {model:?}");
    }
}

#[test]
fn planted_costs_are_found_in_time() {
    let mut host = planted(600);
    let model = of(&mut host, "work").unwrap();
    assert_eq!((model.observations.len(), model.left_out), (16, 0));
    assert!(model.seconds < 60.0 && model.seconds == host.now.as_secs_f64(), "{}", model.seconds);
    finds_what_is_planted(&model, 0.03);
    // What the work takes is known by size and level.
    let services = model.services.iter().map(|of| (of.size, of.cost.zip.unwrap(), of.raw));
    let mut services: Vec<_> = services.collect();
    services.sort_by_key(|(size, level, _)| (*size, *level));
    let expected = [(64, 1), (64, 6), (1518, 1), (1518, 6)].map(|(size, level)| {
        let mean = by_itself(Cost { zip: Some(level), delay: None }, size);
        (size, level, Raw { deviation: mean / 10.0, ..Raw::even(mean) })
    });
    assert_eq!(services, expected);
    assert_eq!(model.wakes.quantile(0.5), Some(30_000));
}

#[test]
fn what_there_is_no_time_for_is_left_out_and_told() {
    for (around, disturbed) in [(1800, 0), (2500, 0), (900, 1)] {
        let mut host = Planted { disturbed, ..planted(around) };
        let model = of(&mut host, "work").unwrap();
        assert!(host.now <= MOST, "{:?}", host.now);
        let (seen, left_out) = (model.observations.len(), model.left_out);
        // A run that is disturbed each time tells nothing.
        let all = seen + left_out as usize;
        assert!(left_out > 0 && (15..=16).contains(&all), "{seen} and {left_out}");
        let said = host.said.last().unwrap();
        assert_eq!(*said, format!("{left_out} runs are left out, since 60 s are over"));
        // All sizes and levels come first, and frames one by one soon.
        let of = |burst| model.observations.iter().filter(|one| one.burst == burst).count();
        assert!(of(32) >= 4 && of(1) >= 3, "{seen}");
        finds_what_is_planted(&model, 0.1);
    }
}

#[test]
fn too_little_is_no_model() {
    for (around, disturbed) in [(6000, 0), (1500, 2)] {
        let mut host = Planted { disturbed, ..planted(around) };
        let said = of(&mut host, "work").unwrap_err().to_string();
        assert!(said.starts_with("60 s are too little for a model of work: "), "{said}");
        assert!(host.now <= MOST, "{:?}", host.now);
    }
    // The first run already takes too long to know what is sent.
    let said = of(&mut planted(70_000), "work").unwrap_err().to_string();
    assert!(said.contains("no run tells how fast the sender sends 1518 bytes"), "{said}");
    // What costs nothing loses nothing, however long it is tried.
    let free = Fit { kept: [1.0, 0.0], frame: [1.0, 0.0], wake: 0.0, ..FIT };
    let said = of(&mut Planted { fit: free, ..planted(500) }, "count").unwrap_err().to_string();
    assert!(said.contains("loses nothing that the sender can send"), "{said}");
}

#[test]
fn a_void_calibration_is_refused_with_its_run() {
    let refused = |mut host: Planted| of(&mut host, "work").unwrap_err().to_string();
    let what = "together: frames were lost on the way, or others came (";
    // No run proves anything, or none of those of one size.
    let all = refused(Planted { disturbed: 9, ..planted(50) });
    assert!(all.starts_with("the calibration is void: the run of 64 bytes at "), "{all}");
    assert!(all.contains(what) && all.contains("(0 runs tell something, "), "{all}");
    assert!(all.ends_with("and calibrate again"), "{all}");
    let long = refused(Planted { disturbed: 9, from_size: 1518, ..planted(50) });
    assert!(long.starts_with("the calibration is void: the run of 1518 bytes at "), "{long}");
    assert!(long.contains(what), "{long}");
    // Its own runs contradict the costs.
    let noisy = refused(Planted { noise: 0.8, ..planted(400) });
    assert!(
        noisy.contains("by its costs a frame that is kept takes ")
            && noisy.contains("ns for one by itself; end what else"),
        "{noisy}"
    );
    let still = refused(Planted { still: 60, ..planted(400) });
    assert!(still.contains("stood still for 60 % of the time that it was watched"), "{still}");
    // What is disturbed a little is a model.
    assert!(of(&mut Planted { noise: 0.1, still: 10, ..planted(400) }, "work").is_ok());
}

#[test]
fn every_setting_is_tried() {
    let depths = ["protocols", "flows"];
    let variants =
        depths.map(|depth| vec![Setting { name: "depth".to_owned(), value: depth.to_owned() }]);
    let fit = Fit { kept: [6000.0, 4.0], frame: [800.0, 0.2], ..FIT };
    let model = with(&mut Planted { fit, ..planted(400) }, "analyze", &variants).unwrap();
    // Lowering rates that lose all takes time, which some runs of the last round do not have then.
    assert!(model.observations.len() >= 12, "{model:?}");
    for (settings, part) in variants.iter().zip([1.0, 2.0]) {
        let found = model.fit_with(settings).unwrap().costs(512, 0.0, 0.0).kept;
        let planted = (6000.0 + 4.0 * 512.0) / part;
        assert!((found / planted - 1.0).abs() < 0.05, "{found}, not {planted}: {model:?}");
    }
    assert_eq!(model.fit_with(&[]), None, "it was not tried as it comes");
    assert_eq!(model.services, [], "nobody knows what analyze takes by itself");
    // Four of them are too many for all rounds, but not for a model.
    let depths = ["protocols", "tcp", "flows", "packets"];
    let variants =
        depths.map(|depth| vec![Setting { name: "depth".to_owned(), value: depth.to_owned() }]);
    let mut host = Planted { fit, ..planted(900) };
    let model = with(&mut host, "analyze", &variants).unwrap();
    assert!(host.now <= MOST && model.left_out > 0, "{:?}", host.now);
    assert!(variants.iter().all(|settings| model.fit_with(settings).is_some()), "{model:?}");
}
