//! Where the daemon listens, and where a client finds it.

use std::fmt;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;

/// A Unix socket, or a host and port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// Path of the socket.
    Unix(PathBuf),
    /// A name or an IP address, and a port.
    Tcp {
        /// Without the brackets of an IPv6 address.
        host: String,
        /// 0 to have one chosen.
        port: u16,
    },
}

/// The text is not an address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not an address; write unix:///path/of/socket, or host:port such as 127.0.0.1:9820"
)]
pub struct BadAddress(pub String);

impl Address {
    /// Whether only this host can reach it.
    pub fn is_local(&self) -> bool {
        match self {
            Self::Unix(_) => true,
            Self::Tcp { host, .. } => match host.parse::<IpAddr>() {
                Ok(ip) => ip.is_loopback(),
                Err(_) => host.eq_ignore_ascii_case("localhost"),
            },
        }
    }

    /// What the host's name stands for; blocks while it is looked up.
    pub(crate) fn resolve(&self) -> std::io::Result<Vec<SocketAddr>> {
        match self {
            Self::Unix(_) => Ok(Vec::new()),
            Self::Tcp { host, port } => (host.as_str(), *port)
                .to_socket_addrs()
                .map(Iterator::collect),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix://{}", path.display()),
            Self::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
        }
    }
}

impl FromStr for Address {
    type Err = BadAddress;

    /// Reads `unix:///path`, `unix:path`, `host:port` or `[ip6]:port`; in front of the latter two
    /// also `http://` and `dns:///`, as clients write them.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = || BadAddress(text.to_owned());
        if let Some(rest) = text.strip_prefix("unix:") {
            let path = rest.strip_prefix("//").unwrap_or(rest);
            return if path.is_empty() {
                Err(bad())
            } else {
                Ok(Self::Unix(path.into()))
            };
        }
        let plain = ["http://", "https://", "dns:///"]
            .into_iter()
            .find_map(|scheme| text.strip_prefix(scheme));
        let plain = plain.unwrap_or(text).trim_end_matches('/');
        let (host, port) = plain.rsplit_once(':').ok_or_else(bad)?;
        let port = port.parse().map_err(|_| bad())?;
        let host = match host.strip_prefix('[') {
            Some(inner) => inner.strip_suffix(']').ok_or_else(bad)?,
            None => host,
        };
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        let bracketed = plain.starts_with('[');
        let valid = if bracketed {
            host.parse::<std::net::Ipv6Addr>().is_ok()
        } else {
            !host.is_empty() && host.chars().all(is_name)
        };
        if valid {
            let host = host.to_owned();
            Ok(Self::Tcp { host, port })
        } else {
            Err(bad())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(host: &str, port: u16) -> Address {
        let host = host.to_owned();
        Address::Tcp { host, port }
    }

    #[test]
    fn addresses_in_every_spelling() {
        for (text, address) in [
            (
                "unix:///run/curio/cuzk.sock",
                Address::Unix("/run/curio/cuzk.sock".into()),
            ),
            ("unix:/a b", Address::Unix("/a b".into())),
            ("unix:relative", Address::Unix("relative".into())),
            ("127.0.0.1:9820", tcp("127.0.0.1", 9820)),
            ("prover.example:0", tcp("prover.example", 0)),
            ("http://127.0.0.1:9820", tcp("127.0.0.1", 9820)),
            ("http://127.0.0.1:9820/", tcp("127.0.0.1", 9820)),
            ("dns:///prover:1", tcp("prover", 1)),
            ("[::1]:9820", tcp("::1", 9820)),
        ] {
            assert_eq!(text.parse(), Ok(address), "{text}");
        }
        for text in [
            "",
            ":",
            ":9820",
            "9820",
            "host",
            "host:",
            "host:port",
            "host:65536",
            "::1:9820",
            "[::1:9820",
            "[x]:1",
            "a b:1",
            "unix:",
            "unix://",
            "tcp://a:1",
        ] {
            assert!(text.parse::<Address>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn what_is_written_reads_back() {
        for text in ["unix:///a/b", "[::1]:5", "example.org:80"] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_local() {
        for (text, local) in [
            ("unix:///a", true),
            ("127.0.0.1:1", true),
            ("127.8.0.1:1", true),
            ("localhost:1", true),
            ("[::1]:1", true),
            ("0.0.0.0:1", false),
            ("[::]:1", false),
            ("10.0.0.1:1", false),
            ("example.org:1", false),
        ] {
            assert_eq!(text.parse::<Address>().unwrap().is_local(), local, "{text}");
        }
    }
}
