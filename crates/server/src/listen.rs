//! Listening sockets: TCP or Unix.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::{Path, PathBuf};

use tokio::net::{TcpListener, UnixListener};

use crate::Error;
use crate::address::Address;

/// A socket that is listened on.
pub(crate) enum Listener {
    /// TCP.
    Tcp(TcpListener),
    /// Unix; its file is removed at the end.
    Unix(UnixListener, SocketFile),
}

/// The file of a Unix socket, removed when dropped.
pub(crate) struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Listens. Must be called inside a runtime; blocks while a host's name is looked up.
pub(crate) fn bind(address: &Address, key: &'static str) -> Result<Listener, Error> {
    let failed = |source: io::Error, remedy| Error::Listen {
        address: address.clone(),
        key,
        source,
        remedy,
    };
    match address {
        Address::Unix(path) => {
            prepare(path).map_err(|e| failed(e, unix_remedy(address, path)))?;
            let listener = UnixListener::bind(path)
                .map_err(|e| failed(e, "its folder must be writable for this user"))?;
            Ok(Listener::Unix(listener, SocketFile(path.clone())))
        }
        Address::Tcp { .. } => {
            let unknown = "the host's name must be one of this machine's";
            let addresses = address.resolve().map_err(|e| failed(e, unknown))?;
            let mut last = io::Error::new(ErrorKind::NotFound, "the name has no address");
            for socket in addresses {
                match listen_tcp(socket) {
                    Ok(listener) => return Ok(Listener::Tcp(listener)),
                    Err(error) => last = error,
                }
            }
            let remedy = match last.kind() {
                ErrorKind::AddrInUse => "stop the program that has the port, or choose another",
                ErrorKind::PermissionDenied => "ports below 1024 need privileges: choose another",
                _ => "the host must be one of this machine's addresses",
            };
            Err(failed(last, remedy))
        }
    }
}

fn listen_tcp(address: std::net::SocketAddr) -> io::Result<TcpListener> {
    let listener = std::net::TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

/// Makes the folder and removes the socket of a daemon that is gone. One that answers stays.
fn prepare(path: &Path) -> io::Result<()> {
    if let Some(folder) = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
    {
        fs::create_dir_all(folder)?;
    }
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(meta) if !meta.file_type().is_socket() => Err(ErrorKind::AlreadyExists.into()),
        Ok(_) if StdUnixStream::connect(path).is_ok() => Err(ErrorKind::AddrInUse.into()),
        Ok(_) => fs::remove_file(path),
    }
}

fn unix_remedy(address: &Address, path: &Path) -> &'static str {
    let in_the_way = fs::symlink_metadata(path).is_ok_and(|meta| !meta.file_type().is_socket());
    if in_the_way {
        "a file that is no socket is in the way: remove it, or choose another path"
    } else if fs::symlink_metadata(path).is_ok() && address.is_local() {
        "another daemon answers there: stop it, or choose another path"
    } else {
        "its folder cannot be made: make it writable for this user, or choose another path"
    }
}

impl Listener {
    /// Where it listens, with the port that was chosen.
    pub(crate) fn address(&self) -> Option<Address> {
        match self {
            Self::Unix(_, file) => Some(Address::Unix(file.0.clone())),
            Self::Tcp(listener) => {
                let address = listener.local_addr().ok()?;
                Some(Address::Tcp {
                    host: address.ip().to_string(),
                    port: address.port(),
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound(address: &Address) -> Result<Listener, Error> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let _inside = runtime.enter();
        bind(address, "daemon.listen")
    }

    #[test]
    fn folders_are_made_and_stale_sockets_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b/c.sock");
        let address = Address::Unix(path.clone());
        // A socket whose listener is gone stays as a file.
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        let first = bound(&address).unwrap();
        let message = bound(&address).err().unwrap().to_string();
        assert!(message.contains("another daemon answers"), "{message}");
        drop(first);
        assert!(!path.exists());
        drop(bound(&address).unwrap());
    }

    #[test]
    fn other_files_are_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "precious").unwrap();
        let message = bound(&Address::Unix(path.clone()))
            .err()
            .unwrap()
            .to_string();
        assert!(message.contains("no socket is in the way"), "{message}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
        let below = Address::Unix(path.join("x.sock"));
        let message = bound(&below).err().unwrap().to_string();
        assert!(message.contains("folder cannot be made"), "{message}");
    }

    #[test]
    fn names_and_chosen_ports() {
        let listener = bound(&"localhost:0".parse().unwrap()).unwrap();
        let Some(Address::Tcp { port, .. }) = listener.address() else {
            panic!("no TCP");
        };
        assert_ne!(port, 0);
        let taken = listener.address().unwrap();
        let message = bound(&taken).err().unwrap().to_string();
        assert!(
            message.contains("stop the program that has the port"),
            "{message}"
        );
        let message = bound(&"nowhere.invalid:1".parse().unwrap()).err().unwrap();
        assert!(message.to_string().contains("nowhere.invalid:1"));
    }
}
