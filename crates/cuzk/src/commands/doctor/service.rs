//! The configuration, and whether the daemon's addresses are free or taken, by whom.

use std::fs;
use std::net::{IpAddr, TcpListener, ToSocketAddrs as _};
use std::path::Path;

use server::client::{Client, Options, http_get};
use server::{Address, Config};

use super::{Finding, State};
use crate::Context;
use crate::failure::Failure;

/// The daemon's configuration, or the defaults where it cannot be used.
pub fn configuration(context: &Context) -> (Config, Vec<Finding>) {
    let subject = "configuration";
    let file = context.config.file();
    let name = file.map_or("the defaults".to_owned(), |path| path.display().to_string());
    match Config::load(file) {
        Ok(config) => {
            let unknown: Vec<_> = config
                .warnings
                .iter()
                .filter(|warning| warning.is_unknown())
                .map(ToString::to_string)
                .collect();
            let finding = if unknown.is_empty() {
                Finding::good(subject, name)
            } else {
                let found = format!("{name}: {}", unknown.join("; "));
                let remedy = "correct or remove them; `cuzk config check` names them all";
                Finding::other(State::Warning, subject, found, remedy)
            };
            (config, vec![finding])
        }
        Err(error) => {
            let finding = Finding::failure(State::Bad, subject, &Failure::from(error));
            (Config::default(), vec![finding])
        }
    }
}

/// Of both addresses.
pub fn addresses(config: &Config) -> Vec<Finding> {
    let mut findings = vec![address("daemon.listen", &config.daemon.listen, false)];
    let status = config.daemon.status_listen.as_ref();
    findings.extend(status.map(|listen| address("daemon.status_listen", listen, true)));
    findings
}

fn address(key: &str, listen: &Address, is_http: bool) -> Finding {
    let subject = format!("{key} {listen}");
    if let Some(who) = daemon(listen, is_http) {
        return Finding::good(subject, who);
    }
    match listen {
        Address::Unix(path) => unix(subject, path),
        Address::Tcp { host, port } => tcp(subject, host, *port),
    }
}

/// What a daemon of ours at this address says of itself.
fn daemon(listen: &Address, is_http: bool) -> Option<String> {
    let reached = crate::client::reachable(listen.clone());
    if is_http {
        let status = http_get(&reached, "/status").ok()?;
        let status: serde_json::Value = serde_json::from_slice(&status).ok()?;
        let version = status["version"].as_str()?;
        return Some(format!("a cuzk daemon of version {version} answers"));
    }
    let status = Client::connect(&reached, &Options::default()).and_then(|mut c| c.status());
    let status = status.ok()?;
    let ready = if status.ready { "ready" } else { "not ready" };
    Some(format!(
        "a cuzk daemon answers, {ready}, up {} s",
        status.uptime_seconds
    ))
}

fn unix(subject: String, path: &Path) -> Finding {
    if path.as_os_str().len() > 107 {
        let remedy = "choose a shorter path: the system takes 107 bytes";
        return Finding::other(State::Bad, subject, "the path is too long", remedy);
    }
    if std::os::unix::net::UnixStream::connect(path).is_ok() {
        let remedy = "end the program that listens there, or choose another path";
        return Finding::other(State::Bad, subject, "taken by another program", remedy);
    }
    if path.exists() && !is_socket(path) {
        let remedy = "choose another path: this file is no socket, and is not replaced";
        return Finding::other(State::Bad, subject, "a file is there", remedy);
    }
    Finding::good(subject, "free")
}

fn is_socket(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt as _;
    fs::metadata(path).is_ok_and(|data| data.file_type().is_socket())
}

fn tcp(subject: String, host: &str, port: u16) -> Finding {
    let addresses = match (host, port).to_socket_addrs() {
        Ok(addresses) => addresses.collect::<Vec<_>>(),
        Err(error) => {
            let remedy = "write an address of this machine";
            return Finding::other(State::Bad, subject, error.to_string(), remedy);
        }
    };
    let mut last = None;
    for address in addresses {
        match TcpListener::bind(address) {
            Ok(_) => return Finding::good(subject, "free"),
            Err(error) => last = Some((address, error)),
        }
    }
    let Some((address, error)) = last else {
        let remedy = "write an address of this machine";
        return Finding::other(State::Bad, subject, "the name has no address", remedy);
    };
    if error.kind() != std::io::ErrorKind::AddrInUse {
        let remedy = "write an address of this machine, and a port that this user may take";
        return Finding::other(State::Bad, subject, error.to_string(), remedy);
    }
    let found = match holder(address.ip(), port) {
        Some(who) => format!("taken by {who}"),
        None => "taken by a program of another user".to_owned(),
    };
    let remedy = format!("end it, or choose another port (`ss -ltnp sport = {port}` as root)");
    Finding::other(State::Bad, subject, found, remedy)
}

/// Name and process id of who listens on a port, where this user may see it.
fn holder(ip: IpAddr, port: u16) -> Option<String> {
    let table = if ip.is_ipv4() {
        "/proc/net/tcp"
    } else {
        "/proc/net/tcp6"
    };
    // Who listens on all addresses may do so by the other table.
    let tables = [table, "/proc/net/tcp", "/proc/net/tcp6"];
    let texts = tables.map(|table| fs::read_to_string(table).unwrap_or_default());
    let inode = texts.iter().find_map(|text| listening(text, port))?;
    let wanted = format!("socket:[{inode}]");
    let processes = fs::read_dir("/proc").ok()?.flatten();
    for process in processes {
        // Beside the processes there are `self` and `thread-self`.
        let name = process.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let handles = fs::read_dir(process.path().join("fd"))
            .into_iter()
            .flatten();
        let holds = handles
            .flatten()
            .filter_map(|handle| fs::read_link(handle.path()).ok())
            .any(|target| target.as_os_str() == wanted.as_str());
        if holds {
            let name = fs::read_to_string(process.path().join("comm")).unwrap_or_default();
            return Some(format!("{} (process {pid})", name.trim()));
        }
    }
    None
}

/// The inode of the socket that listens on a port, of a table of `/proc/net`.
fn listening(table: &str, port: u16) -> Option<String> {
    const LISTEN: &str = "0A";
    let of_line = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (_, local) = fields.get(1)?.rsplit_once(':')?;
        let is_it = u16::from_str_radix(local, 16) == Ok(port) && fields.get(3) == Some(&LISTEN);
        is_it.then(|| fields.get(9).map(|&inode| inode.to_owned()))?
    };
    table.lines().find_map(of_line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_holds_a_port_is_named() {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        let listen = format!("127.0.0.1:{port}").parse().unwrap();
        let taken = address("daemon.listen", &listen, true);
        assert_eq!(taken.state, State::Bad, "{taken:?}");
        let pid = std::process::id().to_string();
        assert!(taken.finding.contains(&pid), "{taken:?}");
        drop(socket);
        let free = address("daemon.listen", &listen, true);
        assert_eq!(
            free,
            Finding::good(format!("daemon.listen {listen}"), "free")
        );
    }

    #[test]
    fn sockets_and_files() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("socket");
        assert_eq!(unix("a".to_owned(), &path).state, State::Good);
        fs::write(&path, "").unwrap();
        assert_eq!(unix("a".to_owned(), &path).state, State::Bad);
        fs::remove_file(&path).unwrap();
        let socket = std::os::unix::net::UnixListener::bind(&path).unwrap();
        assert_eq!(unix("a".to_owned(), &path).state, State::Bad);
        drop(socket);
        assert_eq!(
            unix("a".to_owned(), &path).state,
            State::Good,
            "a stale socket"
        );
        let long = root.path().join("x".repeat(120));
        assert_eq!(unix("a".to_owned(), &long).state, State::Bad);
    }
}
