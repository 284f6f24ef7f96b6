//! The screen on a terminal that is not there.

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

/// A device and its job can be told from others, and every kind is in the queue.
#[test]
fn a_screen_of_the_usual_size_shows_all_parts() {
    let screen = Screen::new("a".to_owned(), false, snapshot());
    for (width, height) in [(80, 24), (160, 30)] {
        let text = drawn(&screen, width, height);
        for part in [
            "NVIDIA H200",
            "porep-1000-7",
            "porep-c2",
            "winning-post",
            "3/10",
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
        assert!(
            text.lines().any(|line| line.starts_with("porep-1000-8")),
            "{text}"
        );
    }
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
