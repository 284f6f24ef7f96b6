//! Tells a service manager how the daemon is (systemd's notification protocol): datagrams with
//! `KEY=value` to the socket that `NOTIFY_SOCKET` names. Without that variable nothing is told.

use std::ffi::OsStr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The daemon takes requests.
pub const READY: &str = "READY=1";
/// The daemon is about to end.
pub const STOPPING: &str = "STOPPING=1";
/// The daemon is alive; due within every `WatchdogSec` of the unit.
pub const ALIVE: &str = "WATCHDOG=1";

/// Whom to tell, if anybody.
pub struct Notifier(Option<(UnixDatagram, SocketAddr)>);

impl Notifier {
    /// The service manager that the environment names.
    pub fn from_environment() -> Self {
        Self(std::env::var_os("NOTIFY_SOCKET").and_then(|name| open(&name)))
    }

    /// Tells it. What cannot be told is lost: the service manager then does as its unit says.
    pub fn tell(&self, state: &str) {
        if let Some((socket, address)) = &self.0 {
            let _ = socket.send_to_addr(state.as_bytes(), address);
        }
    }
}

fn open(name: &OsStr) -> Option<(UnixDatagram, SocketAddr)> {
    let address = match name.as_bytes() {
        [b'@', rest @ ..] => SocketAddr::from_abstract_name(rest),
        [] => return None,
        _ => SocketAddr::from_pathname(name),
    };
    let socket = UnixDatagram::unbound().ok()?;
    // A manager that does not read must not hold anything up.
    socket.set_nonblocking(true).ok()?;
    Some((socket, address.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_arrive_at_paths_and_at_abstract_names() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let name = format!("cuzk-notify-{}", std::process::id());
        let abstract_name = SocketAddr::from_abstract_name(&name).unwrap();
        let sockets = [
            (UnixDatagram::bind(&path).unwrap(), path.into_os_string()),
            (
                UnixDatagram::bind_addr(&abstract_name).unwrap(),
                format!("@{name}").into(),
            ),
        ];
        for (socket, name) in sockets {
            Notifier(open(&name)).tell(READY);
            let mut buffer = [0; 32];
            let count = socket.recv(&mut buffer).unwrap();
            assert_eq!(&buffer[..count], READY.as_bytes());
        }
        Notifier(open(OsStr::new(""))).tell(READY);
        Notifier(open(OsStr::new("/nonexistent/socket"))).tell(READY);
    }
}
