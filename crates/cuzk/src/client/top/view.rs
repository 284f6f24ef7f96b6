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
/// Columns below which the queue is under the devices, not beside them.
const NARROW: u16 = 110;
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
        let narrow = area.width < NARROW;
        let rows = |count: usize| u16::try_from(count).unwrap_or(u16::MAX).saturating_add(3);
        let devices = rows(self.snapshot.devices.len().max(1));
        let queues = rows(self.snapshot.queues.len());
        // A third of the screen at most, so that jobs stay in sight on hosts with many devices.
        let devices = devices.min(area.height / 3 + 3);
        let (top, queues) = if narrow {
            (devices, queues)
        } else {
            (devices.max(queues), 0)
        };
        let events = if area.height >= 30 { EVENTS + 2 } else { 0 };
        let [head, note, top, below, middle, bottom, foot] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(u16::try_from(notes.len()).unwrap_or(0)),
            Constraint::Length(top),
            Constraint::Length(queues),
            Constraint::Min(4),
            Constraint::Length(events),
            Constraint::Length(1),
        ])
        .areas(area);
        frame.render_widget(self.head(), head);
        frame.render_widget(Paragraph::new(notes), note);
        if narrow {
            frame.render_widget(self.devices(), top);
            frame.render_widget(self.queues(), below);
        } else {
            let sides = [Constraint::Fill(1), Constraint::Length(40)];
            let [left, right] = Layout::horizontal(sides).spacing(2).areas(top);
            frame.render_widget(self.devices(), left);
            frame.render_widget(self.queues(), right);
        }
        frame.render_widget(self.jobs(narrow), middle);
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

    /// Without the bars where there is no room for them.
    fn jobs(&self, narrow: bool) -> Table<'_> {
        let all = &self.snapshot.jobs;
        let first = self.offset.min(all.len().saturating_sub(1));
        let rows = all.iter().skip(first).map(|job| self.job(job, narrow));
        let (bar, progress) = match narrow {
            true => (0, ""),
            false => (u16::try_from(BAR).unwrap_or(u16::MAX) + 2, "PROGRESS"),
        };
        let widths = [
            Constraint::Fill(3),
            Constraint::Length(14),
            Constraint::Length(10),
            Constraint::Length(bar),
            Constraint::Length(9),
            Constraint::Length(10),
        ];
        let header = header_row(["JOB", "CIRCUIT", "STATE", progress, "UNITS", "SECONDS"]);
        let title = match first {
            0 => format!("jobs ({})", all.len()),
            _ => format!("jobs ({}, from number {})", all.len(), first + 1),
        };
        framed(Table::new(rows, widths).header(header), &title)
    }

    fn job<'a>(&self, job: &'a Job, narrow: bool) -> Row<'a> {
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
            if narrow { String::new() } else { bar(job) },
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
mod tests;
