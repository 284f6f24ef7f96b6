//! The page in headless Chromium, driven by the DevTools protocol over its pipe: JSON messages
//! with a zero byte after each.
//!
//! Without a Chromium the test says so and passes; with `CUZK_BROWSER=required` it fails then.
//! The last picture of the page is left in `target/tmp/page.png`.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use base64::Engine as _;
use serde_json::{Value, json};
use server::client::{Client, Options};

use crate::common::{Daemon, daemon, quick, request};

const PROGRAMS: [&str; 4] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "chrome-headless-shell",
];
/// Nothing on the page may take longer to show.
const LONG: Duration = Duration::from_secs(15);

fn find() -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    let mut candidates = std::env::split_paths(&folders)
        .flat_map(|folder| PROGRAMS.map(|program| folder.join(program)));
    candidates.find(|path| path.is_file())
}

/// One page in a browser of its own.
struct Page {
    browser: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    session: Value,
    next: u64,
    /// Errors that the page has reported.
    errors: Vec<Value>,
    _profile: tempfile::TempDir,
}

impl Drop for Page {
    fn drop(&mut self) {
        let _ = self.browser.kill();
        let _ = self.browser.wait();
    }
}

impl Page {
    fn open(program: &Path, url: &str) -> Self {
        let profile = tempfile::tempdir().unwrap();
        // The shell gives it our pipes as the handles 3 and 4, where it speaks the protocol.
        let mut browser = Command::new("sh")
            .args(["-c", "exec \"$@\" 3<&0 4>&1 0</dev/null 1>/dev/null", "sh"])
            .arg(program)
            .args([
                "--headless",
                "--remote-debugging-pipe",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--no-first-run",
                "--window-size=1200,1000",
            ])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut page = Self {
            to: browser.stdin.take().unwrap(),
            from: BufReader::new(browser.stdout.take().unwrap()),
            browser,
            session: Value::Null,
            next: 0,
            errors: Vec::new(),
            _profile: profile,
        };
        let target = page.call("Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        page.session = page.call("Target.attachToTarget", attach)["sessionId"].clone();
        for domain in ["Runtime.enable", "Log.enable", "Page.enable"] {
            page.call(domain, json!({}));
        }
        page.call("Page.navigate", json!({ "url": url }));
        page
    }

    /// Calls a method and waits for its answer, noting the errors that come before it.
    #[allow(clippy::needless_pass_by_value, reason = "they are made for the call")]
    fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.next += 1;
        let mut message = json!({"id": self.next, "method": method, "params": parameters});
        if self.session != Value::Null {
            message["sessionId"] = self.session.clone();
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.to.write_all(&bytes).unwrap();
        loop {
            let mut answer = Vec::new();
            self.from.read_until(0, &mut answer).unwrap();
            assert_eq!(answer.pop(), Some(0), "the browser has ended in {method}");
            let mut answer: Value = serde_json::from_slice(&answer).unwrap();
            let method = answer["method"].as_str();
            let is_error = method == Some("Runtime.exceptionThrown")
                || method == Some("Log.entryAdded")
                    && answer["params"]["entry"]["level"] == "error";
            if is_error {
                self.errors.push(answer["params"].take());
            } else if answer["id"] == self.next {
                assert_eq!(answer["error"], Value::Null, "{message}");
                return answer["result"].take();
            }
        }
    }

    /// The value of an expression in the page.
    fn value(&mut self, expression: &str) -> Value {
        let parameters = json!({
            "expression": expression, "returnByValue": true, "awaitPromise": true,
        });
        let mut answer = self.call("Runtime.evaluate", parameters);
        assert_eq!(answer["exceptionDetails"], Value::Null, "{expression}");
        answer["result"]["value"].take()
    }

    /// The text of a part of the page.
    fn text(&mut self, id: &str) -> String {
        let value = self.value(&format!("document.getElementById('{id}').innerText"));
        value.as_str().unwrap_or_default().to_owned()
    }

    /// Waits until an expression is true.
    #[track_caller]
    fn shows(&mut self, what: &str, expression: &str) {
        let began = Instant::now();
        while self.value(expression) != true {
            let body = || "document.body ? document.body.innerText : ''";
            assert!(
                began.elapsed() < LONG,
                "{what} is not to be seen: {}",
                self.value(body())
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until a part of the page has a text.
    #[track_caller]
    fn says(&mut self, id: &str, text: &str) {
        let text = json!(text);
        let has = format!("!!document.getElementById('{id}')?.innerText.includes({text})");
        self.shows(&text.to_string(), &has);
    }

    fn picture(&mut self, name: &str) {
        let picture = self.call("Page.captureScreenshot", json!({"format": "png"}));
        let data = picture["data"].as_str().unwrap();
        let bytes = base64::engine::general_purpose::STANDARD
            .decode(data)
            .unwrap();
        std::fs::write(Path::new(env!("CARGO_TARGET_TMPDIR")).join(name), bytes).unwrap();
    }
}

/// A job of each kind, the first of which the held device takes.
fn submit(daemon: &Daemon) {
    let address = daemon.server.grpc_address();
    let mut client = Client::connect(address, &Options::default()).unwrap();
    for (kind, id) in [
        ("porep", "porep-1000-1"),
        ("snap", "snap <b>1000</b> & 2"),
        ("window", "wdpost-1000-0-[1 2 3]"),
    ] {
        let mut request = request(kind);
        id.clone_into(&mut request.request_id);
        client.submit(request, 0).unwrap();
    }
}

#[test]
fn the_page_shows_what_happens() {
    let Some(program) = find() else {
        let required = std::env::var_os("CUZK_BROWSER").is_some_and(|value| value == "required");
        assert!(
            !required,
            "CUZK_BROWSER=required, and there is none of {PROGRAMS:?}"
        );
        println!("skipped: there is none of {PROGRAMS:?} in PATH to show the page in");
        return;
    };
    let device = quick();
    device.held.store(true, Ordering::Relaxed);
    let daemon = daemon(device);
    let url = format!("http://{}/", daemon.server.http_address().unwrap());
    let mut page = Page::open(&program, &url);
    page.says("state", "ready");
    page.says("devices", "Stand-in 9000");
    page.says("jobs", "no jobs");

    submit(&daemon);
    page.says("devices", "ready, proving");
    page.says("devices", "porep-1000-1");
    page.says("jobs", "wdpost-1000-0-[1 2 3]");
    page.says("jobs", "0/1");
    // A name is text, whatever it looks like.
    page.says("jobs", "snap <b>1000</b> & 2");
    assert_eq!(page.value("document.querySelectorAll('#jobs b').length"), 0);
    let queues = page.text("queues");
    for kind in ["porep-c2", "snap-update", "window-post", "winning-post"] {
        assert!(queues.contains(kind), "{queues}");
    }
    let running = "document.querySelectorAll('#lanes .span.running').length === 1";
    page.shows("the unit on the device", running);
    page.picture("page-at-work.png");

    daemon.device.held.store(false, Ordering::Relaxed);
    page.says("jobs", "completed");
    page.says("jobs", "1/1");
    page.shows(
        "all three jobs",
        "[...document.querySelectorAll('#jobs tr')].filter(tr => \
         tr.innerText.includes('completed')).length === 3",
    );
    page.says("devices", "ready, idle");
    page.shows(
        "their units",
        "document.querySelectorAll('#lanes .span.done').length === 3",
    );
    let full = "[...document.querySelectorAll('#jobs progress')].every(p => p.value === p.max)";
    assert_eq!(page.value(full), true);
    // A job's timeline is where the page says.
    let trace = "fetch(document.querySelector('#jobs a').href).then(answer => answer.json())\
                 .then(trace => trace.traceEvents.length > 2)";
    assert_eq!(page.value(trace), true);
    page.picture("page.png");
    assert!(page.errors.is_empty(), "{:?}", page.errors);

    let Daemon { server, .. } = daemon;
    server.shutdown(Duration::from_secs(1));
    page.shows(
        "that nobody answers",
        "!document.getElementById('lost').hidden",
    );
}
