//! Tests of what rings and those who rule them tell each other.

use std::sync::Arc;

use netsniff_capture::backend::Intake;

use super::*;

/// Has counted this.
#[derive(Debug)]
pub(crate) struct Counts(pub(crate) Counted);

impl Intake for Counts {
    fn shut(&self) -> netsniff_capture::Result<()> {
        Ok(())
    }

    fn counted(&self) -> netsniff_capture::Result<Counted> {
        Ok(self.0)
    }
}

pub(crate) const fn counted(accepted: u64, dropped: u64, filtered: Option<u64>) -> Counted {
    Counted { accepted: Some(accepted), dropped: Some(dropped), filtered }
}

#[test]
fn what_a_ring_has_counted_is_read_without_its_thread() {
    let control = Control::new(3);
    let reports = [(); 3].map(|()| RingReport::default());
    assert_eq!(control.counted(&reports), [None; 3], "they are not there yet");
    let rings = [counted(10, 2, Some(3)), counted(20, 0, None), counted(30, 1, Some(0))];
    let intakes = rings.map(|counted| Arc::new(Counts(counted)));
    for (ring, intake) in intakes.iter().enumerate() {
        control.put_gate(ring, Gate::new(intake), Earlier::NONE);
    }
    assert_eq!(control.counted(&reports), rings.map(Some));
    drop(intakes);
    assert_eq!(control.counted(&reports), [None; 3], "they are gone");
}

#[test]
fn rings_of_an_interface_that_came_back_go_on_with_what_was_before() {
    let control = Control::new(1);
    let intake = Arc::new(Counts(counted(10, 2, Some(3))));
    let earlier = Earlier { times: 1, counted: counted(100, 20, Some(30)) };
    control.put_gate(0, Gate::new(&intake), earlier);
    let told = |times| {
        let returned = Return { times, ..Return::default() };
        [RingReport { returned: Some(returned), ..RingReport::default() }]
    };
    assert_eq!(control.counted(&told(1)), [Some(counted(110, 22, Some(33)))]);
    // Its report is that of the ring before.
    assert_eq!(control.counted(&[RingReport::default()]), [None]);
    assert_eq!(control.counted(&told(2)), [None]);
}

/// The books get the peak of all time since those before, also where a report came too late for them.
#[test]
fn peaks_of_a_report_that_came_too_late_are_in_the_next_books() {
    let held = |bytes, most| Some(HeldBehindHoles { bytes, most: Some(most) });
    let of = |bytes, most| RingReport { held: held(bytes, most), ..RingReport::default() };
    let control = Control::new(1);
    let books = |number| {
        let (reports, are_new) = control.reports(number);
        (reports[0].held, are_new)
    };
    assert_eq!(control.report(0, 1, of(3, 70)).held, held(3, 70));
    assert_eq!((books(1), books(1)), ((held(3, 70), true), (held(3, 70), true)));
    // Nothing but what waited then is known of now.
    assert_eq!(books(2), (None, false));
    control.report(0, 2, of(4, 90));
    assert_eq!(control.report(0, 3, of(5, 60)).held, held(5, 90), "nobody has written the 90");
    assert_eq!(books(3), (held(5, 90), true));
    assert_eq!(control.report(0, 4, of(6, 8)).held, held(6, 8), "the 90 are written");
    assert_eq!(control.last_reports()[0].held, held(6, 8));
    assert_eq!(control.report(0, 5, of(1, 2)).held, held(1, 8), "who only looks takes nothing");
}
