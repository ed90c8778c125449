//! A headless Chromium, and one page in it with all that it asked for and complained of.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use headless_chrome::browser::tab::point::Point;
use headless_chrome::protocol::cdp::types::Event;
use headless_chrome::protocol::cdp::{Emulation, Network, Page as Cdp};
use headless_chrome::{Browser, LaunchOptions, Tab};
use netsniff_testing::has_program;
use serde::de::DeserializeOwned;

/// How long a page may take for anything.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(25);
/// The longest picture of a page, in pixels.
const TALLEST: u32 = 8000;

pub(crate) struct Chromium(Browser);

impl Chromium {
    /// Starts one; `None`, said loudly, without it. `what` tells what was not done.
    pub(crate) fn start(what: &str) -> Option<Self> {
        if !has_program("chromium", what) {
            return None;
        }
        let is_root = nix::unistd::geteuid().is_root();
        let options = LaunchOptions::default_builder()
            .path(
                Some("/usr/bin/chromium".into()).filter(|path: &std::path::PathBuf| path.exists()),
            )
            // Chromium refuses its sandbox to root. It looks at pages of ours alone.
            .sandbox(!is_root)
            .window_size(Some((1280, 900)))
            .idle_browser_timeout(Duration::from_secs(120))
            .build()
            .unwrap();
        Some(Self(Browser::new(options).expect("a Chromium that starts")))
    }

    /// A page with nothing in it.
    pub(crate) fn page(&self) -> Page {
        Page::new(self.0.new_tab().unwrap())
    }

    /// A page of this address.
    pub(crate) fn open(&self, url: &str) -> Page {
        let page = self.page();
        page.go(url);
        page
    }
}

#[derive(Default)]
struct Seen {
    requests: Vec<String>,
    complaints: Vec<String>,
}

pub(crate) struct Page {
    tab: Arc<Tab>,
    seen: Arc<Mutex<Seen>>,
}

impl Page {
    fn new(tab: Arc<Tab>) -> Self {
        tab.set_default_timeout(PATIENCE);
        // What is not in front draws nothing, and keys and clicks wait for that.
        tab.bring_to_front().unwrap();
        tab.enable_log().unwrap().enable_runtime().unwrap();
        tab.call_method(Network::Enable {
            max_total_buffer_size: None,
            max_resource_buffer_size: None,
            max_post_data_size: None,
            report_direct_socket_traffic: None,
            enable_durable_messages: None,
        })
        .unwrap();
        let seen = Arc::new(Mutex::new(Seen::default()));
        let (told, asked) = (Arc::clone(&seen), Arc::downgrade(&tab));
        tab.add_event_listener(Arc::new(move |event: &Event| {
            let mut seen = told.lock().unwrap();
            match event {
                Event::NetworkRequestWillBeSent(it) => {
                    seen.requests.push(it.params.request.url.clone());
                }
                Event::LogEntryAdded(it) => {
                    let entry = &it.params.entry;
                    let at = entry.url.as_deref().unwrap_or("");
                    seen.complaints.push(format!("{}: {at}", entry.text));
                }
                Event::RuntimeExceptionThrown(it) => {
                    seen.complaints.push(format!("{:?}", it.params.exception_details));
                }
                Event::RuntimeConsoleAPICalled(it) => {
                    seen.complaints.push(format!("{:?}", it.params.args));
                }
                Event::PageJavascriptDialogOpening(it) => {
                    seen.complaints.push(format!("a dialog: {}", it.params.message));
                    drop(seen);
                    if let Some(tab) = asked.upgrade() {
                        let _ = tab.get_dialog().dismiss();
                    }
                }
                _ => {}
            }
        }))
        .unwrap();
        Self { tab, seen }
    }

    /// Goes to an address, and waits until all of it is there.
    pub(crate) fn go(&self, url: &str) {
        self.tab.navigate_to(url).unwrap_or_else(|error| panic!("{url}: {error}"));
        self.settle();
    }

    /// Waits until all of a page is there.
    pub(crate) fn settle(&self) {
        self.await_true("document.readyState === 'complete'");
    }

    /// The value of an expression.
    pub(crate) fn value<T: DeserializeOwned>(&self, expression: &str) -> T {
        let wrapped = format!("(async () => JSON.stringify({expression}))()");
        let result = self.tab.evaluate(&wrapped, true);
        let result = result.unwrap_or_else(|error| panic!("{expression}: {error}"));
        let text = result.value.unwrap_or_else(|| panic!("{expression}: {:?}", result.description));
        serde_json::from_str(text.as_str().unwrap()).unwrap()
    }

    /// Waits until an expression is true, and tells how long that took.
    pub(crate) fn await_true(&self, expression: &str) -> Duration {
        let begin = Instant::now();
        loop {
            // While another page comes, there is none to ask.
            let result = self.tab.evaluate(&format!("Boolean({expression})"), false);
            if result.is_ok_and(|result| result.value == Some(true.into())) {
                return begin.elapsed();
            }
            if begin.elapsed() > PATIENCE {
                let body: String = self.value("document.body.innerText");
                panic!("{expression} has not become true in\n{body}");
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Clicks with the mouse.
    pub(crate) fn click(&self, selector: &str) {
        let at: (f64, f64) = self.value(&format!(
            "(() => {{ const it = document.querySelector({selector:?}); \
             it.scrollIntoView({{ block: 'center', inline: 'center', behavior: 'instant' }}); \
             const box = it.getBoundingClientRect(); \
             return [box.x + box.width / 2, box.y + box.height / 2]; }})()"
        ));
        self.tab.click_point(Point { x: at.0, y: at.1 }).unwrap();
    }

    /// Puts a text into a field, as an input method does.
    pub(crate) fn type_into(&self, selector: &str, text: &str) {
        self.click(selector);
        self.tab.send_character(text).unwrap();
    }

    pub(crate) fn press(&self, key: &str) {
        self.tab.press_key(key).unwrap();
    }

    /// What it has asked for so far.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.seen.lock().unwrap().requests.clone()
    }

    /// What has gone wrong since the last call.
    pub(crate) fn complaints(&self) -> Vec<String> {
        // What it tells of a page comes behind the page, and before the next answer.
        std::thread::sleep(2 * PAUSE);
        self.value::<u32>("1");
        std::mem::take(&mut self.seen.lock().unwrap().complaints)
    }

    /// Fails where anything went wrong, or was asked for elsewhere.
    pub(crate) fn is_clean(&self, origin: &str) {
        let complaints = self.complaints();
        assert!(complaints.is_empty(), "{complaints:#?}");
        let is_foreign = |url: &&String| !url.starts_with(origin) && !url.starts_with("data:");
        let requests = self.requests();
        let foreign: Vec<_> = requests.iter().filter(is_foreign).collect();
        assert!(foreign.is_empty(), "{foreign:?}");
    }

    /// Looks with a window so wide, and eyes that like it dark or light.
    pub(crate) fn look(&self, width: u32, height: u32, is_dark: bool) {
        let scheme = if is_dark { "dark" } else { "light" };
        let feature = Emulation::MediaFeature {
            name: "prefers-color-scheme".to_owned(),
            value: scheme.to_owned(),
        };
        self.tab
            .call_method(Emulation::SetEmulatedMedia { media: None, features: Some(vec![feature]) })
            .unwrap();
        let size = serde_json::json!({
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false,
        });
        let size: Emulation::SetDeviceMetricsOverride = serde_json::from_value(size).unwrap();
        self.tab.call_method(size).unwrap();
    }

    /// Pictures of the whole page, wide and narrow, light and dark, in `target/tmp/browser`, where they are asked for.
    pub(crate) fn shoot(&self, name: &str) {
        if std::env::var_os("NETSNIFF_PICTURES").is_none() {
            return;
        }
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("browser");
        fs::create_dir_all(&folder).unwrap();
        for (width, is_dark) in [(1280, false), (1280, true), (420, false), (420, true)] {
            self.look(width, 900, is_dark);
            let tall: u32 = self.value("document.documentElement.scrollHeight");
            self.look(width, tall.clamp(900, TALLEST), is_dark);
            let form = Cdp::CaptureScreenshotFormatOption::Png;
            let picture = self.tab.capture_screenshot(form, None, None, true).unwrap();
            let scheme = if is_dark { "dark" } else { "light" };
            fs::write(folder.join(format!("{name}-{width}-{scheme}.png")), picture).unwrap();
        }
        self.look(1280, 900, false);
    }
}
