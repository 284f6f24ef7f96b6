//! The screen: devices, queues, jobs and recent events. Colour only adds to words.

use ratatui::Frame;
use ratatui::crossterm::event::KeyCode;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Clear, Paragraph, Row, Table, Wrap};

use super::model::{Device, Job, Snapshot};
use crate::table;

/// Cells of a job's progress bar.
const BAR: usize = 20;
/// Rows of events, where there is room.
const EVENTS: u16 = 8;
const KEYS: &str = " q quit   ↑ ↓ jobs   p pause   ? help ";

/// What is shown, and how.
pub struct Screen {
    address: String,
    colour: bool,
    snapshot: Snapshot,
    /// Set while the daemon does not answer.
    trouble: Option<String>,
    /// First job that is shown.
    offset: usize,
    paused: bool,
    help: bool,
}

impl Screen {
    /// The first state is there already.
    pub fn new(address: String, colour: bool, snapshot: Snapshot) -> Self {
        Self {
            address,
            colour,
            snapshot,
            trouble: None,
            offset: 0,
            paused: false,
            help: false,
        }
    }

    /// A new state, or why there is none; then the last one stays.
    pub fn take(&mut self, answer: Result<Snapshot, String>) {
        match answer {
            Ok(_) if self.paused => {}
            Ok(snapshot) => (self.snapshot, self.trouble) = (snapshot, None),
            Err(cause) => self.trouble = Some(cause),
        }
    }

    /// A key that does not quit.
    pub fn key(&mut self, key: KeyCode) {
        match key {
            KeyCode::Up | KeyCode::Char('k') => self.offset = self.offset.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.offset += 1,
            KeyCode::PageUp => self.offset = self.offset.saturating_sub(10),
            KeyCode::PageDown => self.offset += 10,
            KeyCode::Home => self.offset = 0,
            KeyCode::Char('p') => self.paused = !self.paused,
            KeyCode::Char('?' | 'h') => self.help = !self.help,
            _ => {}
        }
        let last = self.snapshot.jobs.len().saturating_sub(1);
        self.offset = self.offset.min(last);
    }

    /// Draws everything.
    pub fn draw(&self, frame: &mut Frame<'_>) {
        let area = frame.area();
        let notes = self.notes();
        let devices = u16::try_from(self.snapshot.devices.len()).unwrap_or(u16::MAX);
        // A third of the screen at most, so that jobs stay in sight on hosts with many devices.
        let devices = devices.max(1).saturating_add(3).min(area.height / 3 + 3);
        let events = if area.height >= 30 { EVENTS + 2 } else { 0 };
        let [head, note, top, middle, bottom, foot] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(u16::try_from(notes.len()).unwrap_or(0)),
            Constraint::Length(devices),
            Constraint::Min(4),
            Constraint::Length(events),
            Constraint::Length(1),
        ])
        .areas(area);
        frame.render_widget(self.head(), head);
        frame.render_widget(Paragraph::new(notes), note);
        let [left, right] =
            Layout::horizontal([Constraint::Fill(1), Constraint::Length(40)]).areas(top);
        frame.render_widget(self.devices(), left);
        frame.render_widget(self.queues(), right);
        frame.render_widget(self.jobs(), middle);
        frame.render_widget(self.events(), bottom);
        let keys = Style::new().add_modifier(Modifier::REVERSED);
        frame.render_widget(Paragraph::new(KEYS).style(keys), foot);
        if self.help {
            help(frame, area);
        }
    }

    fn style(&self, colour: Color) -> Style {
        if self.colour {
            Style::new().fg(colour)
        } else {
            Style::new()
        }
    }

    fn head(&self) -> Paragraph<'_> {
        let now = &self.snapshot;
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let (state, colour) = if now.ready {
            ("ready", Color::Green)
        } else {
            ("NOT READY", Color::Red)
        };
        let mut line = vec![
            Span::styled(format!("cuzk {}", now.version), bold),
            Span::raw(format!(" at {}  ", self.address)),
            Span::styled(state, self.style(colour)),
            Span::raw(format!(
                "  up {}  completed {}  failed {}  cancelled {}  memory {} of {}",
                duration(now.up_secs),
                now.completed,
                now.failed,
                now.cancelled,
                table::bytes(now.memory_used),
                table::bytes(now.memory_total),
            )),
        ];
        if now.test_keys {
            line.push(Span::styled("  TEST KEY", self.style(Color::Yellow)));
        }
        if self.paused {
            line.push(Span::styled("  PAUSED", bold));
        }
        Paragraph::new(Line::from(line))
    }

    fn notes(&self) -> Vec<Line<'_>> {
        let red = self.style(Color::Red);
        let store = self.snapshot.store_error.iter();
        let store = store.map(|cause| format!("the store does not work: {cause}"));
        let trouble = self.trouble.iter();
        let trouble = trouble.map(|cause| format!("no answer, this is the last state: {cause}"));
        let notes = store.chain(trouble);
        notes.map(|text| Line::styled(text, red)).collect()
    }

    fn devices(&self) -> Table<'_> {
        let header = ["", "DEVICE", "STATE", "JOB", "UNIT", "SECONDS", "NEXT"];
        let rows = self
            .snapshot
            .devices
            .iter()
            .map(|device| self.device(device));
        let widths = [
            Constraint::Length(3),
            Constraint::Fill(2),
            Constraint::Fill(2),
            Constraint::Fill(3),
            Constraint::Length(5),
            Constraint::Length(8),
            Constraint::Length(5),
        ];
        framed(
            Table::new(rows, widths).header(header_row(header)),
            "devices",
        )
    }

    fn device<'a>(&self, device: &'a Device) -> Row<'a> {
        let colour = match (device.good, device.unit) {
            (false, _) => self.style(Color::Red),
            (true, Some(_)) => self.style(Color::Green),
            (true, None) => Style::new(),
        };
        Row::new([
            device.number.to_string(),
            device.name.clone(),
            device.state.clone(),
            device.job.clone(),
            device.unit.map_or(String::new(), |unit| unit.to_string()),
            device
                .secs
                .map_or(String::new(), |secs| format!("{secs:.1}")),
            device.prepared.to_string(),
        ])
        .style(colour)
    }

    fn queues(&self) -> Table<'_> {
        let rows = self.snapshot.queues.iter().map(|(kind, waiting, working)| {
            Row::new([kind.clone(), waiting.to_string(), working.to_string()])
        });
        let widths = [
            Constraint::Fill(1),
            Constraint::Length(8),
            Constraint::Length(11),
        ];
        let header = header_row(["KIND", "WAITING", "IN PROGRESS"]);
        framed(Table::new(rows, widths).header(header), "queue")
    }

    fn jobs(&self) -> Table<'_> {
        let all = &self.snapshot.jobs;
        let first = self.offset.min(all.len().saturating_sub(1));
        let rows = all.iter().skip(first).map(|job| self.job(job));
        let widths = [
            Constraint::Fill(3),
            Constraint::Length(14),
            Constraint::Length(10),
            Constraint::Length(u16::try_from(BAR).unwrap_or(u16::MAX) + 2),
            Constraint::Length(9),
            Constraint::Length(10),
        ];
        let header = header_row(["JOB", "CIRCUIT", "STATE", "PROGRESS", "UNITS", "SECONDS"]);
        let title = match first {
            0 => format!("jobs ({})", all.len()),
            _ => format!("jobs ({}, from number {})", all.len(), first + 1),
        };
        framed(Table::new(rows, widths).header(header), &title)
    }

    fn job<'a>(&self, job: &'a Job) -> Row<'a> {
        let colour = match job.state.as_str() {
            "completed" => self.style(Color::Green),
            "failed" => self.style(Color::Red),
            "running" => self.style(Color::Cyan),
            _ => Style::new(),
        };
        Row::new([
            job.name.clone(),
            job.circuit.clone(),
            job.state.clone(),
            bar(job),
            format!("{}/{}", job.done, job.total),
            format!("{:.1}", job.secs),
        ])
        .style(colour)
    }

    fn events(&self) -> Table<'_> {
        let rows = self.snapshot.events.iter().map(|event| {
            let style = match event.state.as_str() {
                "done" => Style::new(),
                _ => self.style(Color::Red),
            };
            Row::new([
                format!("{} ago", duration(event.ago)),
                format!("device {}", event.device),
                event.state.clone(),
                format!("{} unit {}", event.job, event.unit),
                format!("{:.1} s", event.secs),
            ])
            .style(style)
        });
        let widths = [
            Constraint::Length(12),
            Constraint::Length(10),
            Constraint::Length(12),
            Constraint::Fill(1),
            Constraint::Length(10),
        ];
        framed(Table::new(rows, widths), "recent units")
    }
}

fn framed<'a>(table: Table<'a>, title: &str) -> Table<'a> {
    let block = Block::new()
        .borders(Borders::TOP)
        .title(format!(" {title} "));
    table.block(block)
}

fn header_row<const N: usize>(names: [&'static str; N]) -> Row<'static> {
    Row::new(names).style(Style::new().add_modifier(Modifier::BOLD))
}

/// Proven units as `#`, those at work as `-`.
fn bar(job: &Job) -> String {
    let cells = |units: u64| {
        let share = units.min(job.total) * BAR as u64;
        usize::try_from(share.checked_div(job.total).unwrap_or(0)).unwrap_or(0)
    };
    let done = cells(job.done);
    // What is at work shows, however small its share.
    let running = cells(job.done + job.running).saturating_sub(done);
    let running = running.max(usize::from(job.running > 0)).min(BAR - done);
    let rest = BAR - done - running;
    format!(
        "[{}{}{}]",
        "#".repeat(done),
        "-".repeat(running),
        " ".repeat(rest)
    )
}

fn duration(secs: f64) -> String {
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float that is too large becomes the largest number"
    )]
    let secs = secs.max(0.0) as u64;
    match (secs / 86_400, secs / 3600 % 24, secs / 60 % 60, secs % 60) {
        (0, 0, 0, s) => format!("{s} s"),
        (0, 0, m, s) => format!("{m} m {s:02} s"),
        (0, h, m, _) => format!("{h} h {m:02} m"),
        (d, h, ..) => format!("{d} d {h:02} h"),
    }
}

const HELP: &str = "\
q, Esc, Ctrl-C   quit
up, down, k, j   one job up, down
PgUp, PgDn, Home ten jobs up, down; the first
p                pause
?, h             this

Progress: # proven, - at work.
Devices in red get no units; their state says why.
`cuzk trace JOB` shows a job's timeline.";

fn help(frame: &mut Frame<'_>, area: Rect) {
    let width = area.width.min(56);
    let height = area.height.min(12);
    let place = Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + (area.height - height) / 2,
        width,
        height,
    };
    let text = Paragraph::new(HELP).wrap(Wrap { trim: false });
    frame.render_widget(Clear, place);
    frame.render_widget(text.block(Block::bordered().title(" keys ")), place);
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use serde_json::json;

    use super::*;

    fn snapshot() -> Snapshot {
        let units = |done: usize, running: usize| {
            let state = |i| match i {
                i if i < done => "done",
                i if i < done + running => "gpu",
                _ => "pending",
            };
            (0..10)
                .map(|i| json!({"state": state(i)}))
                .collect::<Vec<_>>()
        };
        let status = json!({
            "version": "1.2.3", "ready": true, "test_keys": true, "uptime_secs": 3725.4,
            "counters": {"total_completed": 30, "total_failed": 1, "total_cancelled": 2},
            "memory": {"total_bytes": 64_u64 << 30, "used_bytes": 8_u64 << 30},
            "gpu_workers": [
                {"worker_id": 0, "name": "gpu-0", "model": "NVIDIA H200", "condition": "ready",
                 "state": "proving", "cause": "", "current_job": "porep-1000-7\u{1b}[2J",
                 "current_partition": 4, "busy_secs": 1.25, "prepared": 1},
                {"worker_id": 1, "name": "gpu-1", "condition": "quarantined",
                 "cause": "wrong proof", "state": "idle", "prepared": 0}],
            "queues": [{"proof_kind": "porep-c2", "pending": 7, "in_progress": 1},
                       {"proof_kind": "winning-post", "pending": 0, "in_progress": 0}],
            "pipelines": [
                {"job_id": "porep-1000-7", "circuit": "porep-32g", "state": "running",
                 "partitions_done": 3, "total_partitions": 10, "started_secs_ago": 9.04,
                 "partitions": units(3, 2)},
                {"job_id": "porep-1000-8", "circuit": "porep-32g", "state": "waiting",
                 "partitions_done": 0, "total_partitions": 10, "started_secs_ago": 2.0,
                 "partitions": units(0, 0)}],
        });
        let timeline = json!({"now_ms": 100_000, "spans": [
            {"device": 0, "job": "porep-1000-6", "unit": 9, "start_ms": 80_000,
             "end_ms": 85_000, "state": "done"},
            {"device": 1, "job": "porep-1000-6", "unit": 3, "start_ms": 90_000,
             "end_ms": 91_500, "state": "wrong proof"},
            {"device": 0, "job": "porep-1000-7", "unit": 4, "start_ms": 99_000,
             "end_ms": null, "state": "running"}]});
        Snapshot::new(&status, &timeline)
    }

    fn drawn(screen: &Screen, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| screen.draw(frame)).unwrap();
        let buffer = terminal.backend().buffer().clone();
        let lines = (0..height).map(|y| {
            let line: String = (0..width).map(|x| buffer[(x, y)].symbol()).collect();
            line.trim_end().to_owned()
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn the_whole_screen() {
        let screen = Screen::new("127.0.0.1:9821".to_owned(), false, snapshot());
        let text = drawn(&screen, 160, 30);
        let line = |part: &str| {
            let line = text.lines().find(|line| line.contains(part));
            line.unwrap_or_else(|| panic!("{part} is not in\n{text}"))
        };
        let head = line("cuzk 1.2.3 at 127.0.0.1:9821");
        for part in [
            "ready",
            "up 1 h 02 m",
            "completed 30",
            "failed 1",
            "TEST KEY",
        ] {
            assert!(head.contains(part), "{part} is not in {head}");
        }
        assert!(line("NVIDIA H200").contains("proving"));
        assert!(line("gpu-1").contains("quarantined: wrong proof"));
        assert!(line("porep-c2").contains('7'));
        assert!(line("[######----          ]").contains("3/10"));
        assert!(line("porep-1000-8").contains("waiting"));
        let event = line("porep-1000-6 unit 3");
        assert!(
            event.contains("8 s ago") && event.contains("wrong proof"),
            "{event}"
        );
        assert!(!text.contains('\u{1b}') && line(" q quit").contains("? help"));
    }

    #[test]
    fn keys_scroll_pause_and_help() {
        let mut screen = Screen::new("a".to_owned(), true, snapshot());
        screen.key(KeyCode::Down);
        let text = drawn(&screen, 120, 30);
        assert!(
            text.contains("from number 2") && !text.contains("[######"),
            "{text}"
        );
        screen.key(KeyCode::PageDown);
        screen.key(KeyCode::Home);
        assert!(drawn(&screen, 120, 30).contains("jobs (2) "));
        screen.key(KeyCode::Char('?'));
        assert!(drawn(&screen, 120, 30).contains("this"));
        screen.key(KeyCode::Char('p'));
        screen.take(Ok(Snapshot::default()));
        let text = drawn(&screen, 160, 30);
        assert!(text.contains("PAUSED") && text.contains("1.2.3"), "{text}");
    }

    #[test]
    fn a_daemon_that_does_not_answer_is_told_beside_its_last_state() {
        let mut screen = Screen::new("a".to_owned(), false, snapshot());
        screen.take(Err("connection refused".to_owned()));
        let text = drawn(&screen, 120, 30);
        assert!(text.contains("connection refused") && text.contains("porep-1000-8"));
        screen.take(Ok(Snapshot::default()));
        let text = drawn(&screen, 120, 30);
        assert!(
            text.contains("NOT READY") && !text.contains("refused"),
            "{text}"
        );
    }

    #[test]
    fn any_size_of_terminal_will_do() {
        let mut screen = Screen::new("a".to_owned(), true, snapshot());
        for help in [false, true] {
            screen.help = help;
            for (width, height) in [(1, 1), (20, 3), (40, 10), (80, 24), (300, 100)] {
                drawn(&screen, width, height);
            }
        }
    }

    #[test]
    fn bars_and_durations() {
        let job = |done, running, total| Job {
            done,
            running,
            total,
            ..Job::default()
        };
        assert_eq!(bar(&job(0, 0, 0)), format!("[{}]", " ".repeat(BAR)));
        assert_eq!(bar(&job(10, 0, 10)), format!("[{}]", "#".repeat(BAR)));
        assert_eq!(bar(&job(0, 1, 126)), format!("[-{}]", " ".repeat(BAR - 1)));
        assert_eq!(bar(&job(5, 99, 10)).len(), BAR + 2);
        for (secs, text) in [(0.9, "0 s"), (61.0, "1 m 01 s"), (3600.0, "1 h 00 m")] {
            assert_eq!(duration(secs), text);
        }
        assert_eq!(duration(90_000.0), "1 d 01 h");
    }
}
