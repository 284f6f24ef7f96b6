//! `cuzk top`: the state of the daemon, once a second.
//!
//! One thread asks the daemon, the other draws and listens to keys, so that a daemon that does not
//! answer does not hold up the terminal.

mod model;
mod plain;
mod view;

use std::io::{self, IsTerminal as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use serde_json::Value;
use server::Address;
use server::client::{ClientError, http_get};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::args::TopArgs;
use super::{failure, http_address};
use crate::Context;
use crate::cli::Global;
use crate::failure::{Exit, Failure};
use model::Snapshot;
use view::Screen;

/// Pause between questions.
const PERIOD: Duration = Duration::from_secs(1);
/// How soon a key or a signal is noticed.
const KEY_PERIOD: Duration = Duration::from_millis(100);
/// How far back events go, milliseconds.
const EVENTS_MS: u64 = 10 * 60 * 1000;

/// Runs until it is told to quit, or once.
pub fn run(context: &Context, global: &Global, args: &TopArgs) -> Result<(), Failure> {
    let address = http_address(global, &args.http)?;
    let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    let terminal = io::stdout().is_terminal() && io::stdin().is_terminal() && !dumb;
    // Before the terminal is changed: a daemon that is not there is told as any other error.
    let first = ask(&address).map_err(failure)?;
    if args.once || context.output.json() || !terminal {
        let text = plain::screen(&first.status);
        return context.output.show(&first.status, &text);
    }
    let colour = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let screen = Screen::new(
        address.to_string(),
        colour,
        Snapshot::new(&first.status, &first.timeline),
    );
    let (sender, answers) = channel();
    thread::spawn(move || ask_again(&address, &sender));
    interactive(screen, &answers).map_err(|error| {
        let remedy = "see `cuzk top --once`, which needs no terminal";
        Failure::new(
            Exit::Resources,
            "TERMINAL",
            "the terminal cannot be used",
            remedy,
        )
        .because(&error)
    })
}

/// What the daemon says.
struct Answer {
    status: Value,
    timeline: Value,
}

fn ask(address: &Address) -> Result<Answer, ClientError> {
    let json = |path: &str| {
        let bytes = http_get(address, path)?;
        Ok::<Value, ClientError>(serde_json::from_slice(&bytes).unwrap_or(Value::Null))
    };
    let status = json("/status")?;
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| {
            u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
        });
    let since = now.saturating_sub(EVENTS_MS);
    let timeline = json(&format!("/timeline?since={since}"))?;
    Ok(Answer { status, timeline })
}

fn ask_again(address: &Address, sender: &Sender<Result<Snapshot, String>>) {
    loop {
        thread::sleep(PERIOD);
        let answer = ask(address).map_err(|error| error.to_string());
        let snapshot = answer.map(|answer| Snapshot::new(&answer.status, &answer.timeline));
        if sender.send(snapshot).is_err() {
            return;
        }
    }
}

/// Takes the terminal, and gives it back whatever happens: also a panic restores it, by the hook
/// that taking it installs.
fn interactive(mut screen: Screen, answers: &Receiver<Result<Snapshot, String>>) -> io::Result<()> {
    let ended = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&ended))?;
    }
    let mut terminal = ratatui::try_init()?;
    let result = draw_until(&mut terminal, &mut screen, answers, &ended);
    let restored = ratatui::try_restore();
    // A terminal that is gone cannot be restored, and need not.
    result.and(if ended.load(Ordering::Relaxed) {
        Ok(())
    } else {
        restored
    })
}

fn draw_until(
    terminal: &mut DefaultTerminal,
    screen: &mut Screen,
    answers: &Receiver<Result<Snapshot, String>>,
    ended: &AtomicBool,
) -> io::Result<()> {
    let mut drawn: Option<Instant> = None;
    loop {
        let mut news = false;
        while let Ok(answer) = answers.try_recv() {
            screen.take(answer);
            news = true;
        }
        if news || drawn.is_none_or(|at| at.elapsed() >= PERIOD) {
            terminal.draw(|frame| screen.draw(frame))?;
            drawn = Some(Instant::now());
        }
        if ended.load(Ordering::Relaxed) {
            return Ok(());
        }
        if !event::poll(KEY_PERIOD)? {
            continue;
        }
        match event::read()? {
            Event::Key(key) if key.kind != KeyEventKind::Release => {
                if quits(key) {
                    return Ok(());
                }
                screen.key(key.code);
                drawn = None;
            }
            Event::Resize(..) => drawn = None,
            _ => {}
        }
    }
}

fn quits(key: KeyEvent) -> bool {
    let interrupt = key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c');
    interrupt || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc)
}
