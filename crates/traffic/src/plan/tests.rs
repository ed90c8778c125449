//! Plans by arithmetic on paper, and for any frames.

use super::*;

fn frame(recorded: i64, len: usize) -> Outgoing {
    Outgoing { recorded: Timestamp::from_nanos(recorded), len }
}

fn frames_a_second(rate: f64) -> Mean {
    Mean::Frames(Rate::per_second(rate).unwrap())
}

fn dues(plan: &mut Plan, times: &[i64]) -> Vec<u64> {
    times.iter().map(|time| plan.due(&frame(*time, 100))).collect()
}

#[test]
fn even_gaps_never_drift() {
    // A third of a microsecond is no whole number of nanoseconds.
    let mut plan = Plan::Even(Even::new(frames_a_second(3_000_000.0), 1));
    assert_eq!(dues(&mut plan, &[0; 4]), [0, 333, 666, 1000]);
    let mut last = 0;
    for _ in 4..=3_000_000 {
        last = plan.due(&frame(0, 100));
    }
    assert_eq!(last, 1_000_000_000, "the frame after three million others");
    let mut slow = Plan::Even(Even::new(frames_a_second(0.5), 1));
    assert_eq!(dues(&mut slow, &[0; 3]), [0, 2_000_000_000, 4_000_000_000]);
    assert!(Rate::per_second(0.0).is_none() && Rate::of(5, Duration::ZERO).is_none());
    assert_eq!(Rate::of(1000, Duration::from_millis(500)), Rate::per_second(2000.0));
}

#[test]
fn bits_count_the_frames_before() {
    let mut plan = Plan::Even(Even::new(Mean::bits(Rate::per_second(8e6).unwrap()), 1));
    // A byte a microsecond.
    let at = [100, 50, 1000, 1].map(|len| plan.due(&frame(0, len)));
    assert_eq!(at, [0, 100_000, 150_000, 1_150_000]);
}

#[test]
fn gaps_of_a_link_are_those_of_ieee_802_3() {
    // 64 bytes with frame check sequence, 8 of preamble and 12 of gap, at 1 Gbit/s: 1,488,095 frames a second.
    let rate = Rate::per_second(1e9).unwrap();
    let mut plan = Plan::Even(Even::new(Mean::Bits { rate, overhead: 4 + 8 + 12 }, 1));
    let at = [60, 60, 1514, 60].map(|len| plan.due(&frame(0, len)));
    assert_eq!(at, [0, 672, 1344, 1344 + 12_304]);
}

#[test]
fn bursts_are_exact_and_keep_the_mean() {
    let mut plan = Plan::Even(Even::new(frames_a_second(1000.0), 4));
    let at = dues(&mut plan, &[0; 10]);
    assert_eq!(at, [0, 0, 0, 0, 4_000_000, 4_000_000, 4_000_000, 4_000_000, 8_000_000, 8_000_000]);
    let mut bits = Plan::Even(Even::new(Mean::bits(Rate::per_second(8e6).unwrap()), 2));
    assert_eq!([10, 20, 30, 40].map(|len| bits.due(&frame(0, len))), [0, 0, 30_000, 30_000]);
}

#[test]
fn recorded_gaps_are_kept_and_scaled() {
    let times = [5_000, 6_000, 6_000, 9_500];
    let mut plan = Plan::Recorded(Recorded::new(1, 1, None));
    assert_eq!(dues(&mut plan, &times), [0, 1000, 1000, 4500]);
    plan.again();
    assert_eq!(dues(&mut plan, &times), [6000, 7000, 7000, 10_500], "after the mean gap of 1500");
    let mut half = Plan::Recorded(Recorded::new(2, 1, None));
    assert_eq!(dues(&mut half, &times), [0, 2000, 2000, 9000]);
    let mut single = Plan::Recorded(Recorded::new(1, 1, None));
    assert_eq!(dues(&mut single, &[7]), [0]);
    single.again();
    assert_eq!(dues(&mut single, &[7]), [0], "one frame has no gap");
}

#[test]
fn times_that_go_back_or_leap_do_not_break_a_plan() {
    let mut plan = Recorded::new(1, 1, Some(Duration::from_nanos(1000)));
    let mut due = |time| plan.due(&frame(time, 60));
    assert_eq!([0, 500, 300, 600].map(&mut due), [0, 500, 500, 600]);
    assert_eq!([i64::MAX - 50, i64::MAX].map(&mut due), [1600, 1650]);
    assert_eq!(plan.shortened(), 1);
    let mut whole = Plan::Recorded(Recorded::new(u64::MAX, 1, None));
    assert_eq!(dues(&mut whole, &[i64::MIN, i64::MAX]), [0, u64::MAX]);
}

#[test]
fn poisson_gaps_have_their_mean_and_their_seed() {
    let plan = |seed| Plan::Poisson(Poisson::new(frames_a_second(1e6), 1, seed));
    let gaps = |mut plan: Plan| {
        let at: Vec<u64> = (0..200_001).map(|_| plan.due(&frame(0, 60))).collect();
        assert_eq!(at[0], 0);
        at.windows(2).map(|pair| pair[1] - pair[0]).collect::<Vec<u64>>()
    };
    let some = gaps(plan(7));
    let mean = some.iter().sum::<u64>() as f64 / some.len() as f64;
    assert!((990.0..1010.0).contains(&mean), "{mean}");
    // Of an exponential distribution, 1 - 1/e lie below the mean, and the deviation is the mean.
    let below = some.iter().filter(|gap| **gap < 1000).count() as f64 / some.len() as f64;
    assert!((0.627..0.637).contains(&below), "{below}");
    let squares = some.iter().map(|gap| (*gap as f64 - mean).powi(2)).sum::<f64>();
    let deviation = (squares / some.len() as f64).sqrt();
    assert!((980.0..1020.0).contains(&deviation), "{deviation}");
    assert_eq!(some, gaps(plan(7)));
    assert_ne!(some, gaps(plan(8)));
    let mut bursts = Plan::Poisson(Poisson::new(frames_a_second(1e6), 3, 1));
    let at = dues(&mut bursts, &[0; 6]);
    assert!(at[0] == at[2] && at[2] < at[3] && at[3] == at[5], "{at:?}");
}

/// Whatever is asked for, frames leave in their order and the mean is the asked one to the last frame.
#[test]
fn plans_are_monotonous_and_exact_for_any_frames() {
    let mut random = Random::new(11);
    for _ in 0..300 {
        let rate = Rate::per_second(1.0 + random.below(2_000_000) as f64 / 7.0).unwrap();
        let mean = if random.chance(0.5) { Mean::Frames(rate) } else { Mean::bits(rate) };
        let burst = 1 + random.below(9);
        let mut plan = match random.below(3) {
            0 => Plan::Even(Even::new(mean, burst)),
            1 => Plan::Poisson(Poisson::new(mean, burst, random.next_u64())),
            _ => Plan::Recorded(Recorded::new(1 + random.below(99), 1 + random.below(99), None)),
        };
        let (mut last, mut before) = (0, 0);
        for number in 0..200 {
            let it = frame(random.below(1_000_000) as i64, 60 + random.below(1459) as usize);
            let due = plan.due(&it);
            assert!(due >= last, "{plan:?}");
            if let Plan::Even(_) = plan
                && number % burst == 0
            {
                let exact = before as f64 / rate.units() * 1e9;
                assert!((due as f64 - exact).abs() <= 1.0 + exact * 1e-12, "{due} {exact}");
            }
            before += mean.units(it.len);
            last = due;
            if random.chance(0.01) {
                plan.again();
            }
        }
    }
}
