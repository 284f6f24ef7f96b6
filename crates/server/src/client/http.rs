//! The daemon's HTTP side: one request per connection.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

use super::{CONNECT_LIMIT, ClientError, Result};
use crate::address::Address;

/// Largest answer.
const HTTP_LIMIT: u64 = 256 << 20;

/// Gets a document of the daemon's HTTP address.
///
/// # Errors
/// [`ClientError::Unreachable`]; [`ClientError::Http`] for any status but 200.
pub fn http_get(address: &Address, path: &str) -> Result<Vec<u8>> {
    let unreachable = |cause: String| ClientError::Unreachable {
        address: address.to_string(),
        cause,
    };
    let answer = http_exchange(address, path).map_err(|error| unreachable(error.to_string()))?;
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n");
    let no_http = || unreachable("the answer is not HTTP".to_owned());
    let end = end.ok_or_else(no_http)?;
    let head = String::from_utf8_lossy(&answer[..end]);
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    let body = answer[end + 4..].to_vec();
    match status.ok_or_else(no_http)? {
        200 => Ok(body),
        status => Err(ClientError::Http {
            address: address.to_string(),
            path: path.to_owned(),
            status,
            message: String::from_utf8_lossy(&body)
                .lines()
                .next()
                .unwrap_or("")
                .to_owned(),
        }),
    }
}

/// One request per connection; the answer ends with it.
fn http_exchange(address: &Address, path: &str) -> io::Result<Vec<u8>> {
    let request = format!("GET {path} HTTP/1.1\r\nHost: cuzk\r\nConnection: close\r\n\r\n");
    let mut answer = Vec::new();
    match address {
        Address::Unix(socket) => {
            let mut stream = UnixStream::connect(socket)?;
            stream.set_read_timeout(Some(CONNECT_LIMIT))?;
            stream.write_all(request.as_bytes())?;
            stream.take(HTTP_LIMIT).read_to_end(&mut answer)?;
        }
        Address::Tcp { host, port } => {
            let mut stream = TcpStream::connect((host.as_str(), *port))?;
            stream.set_read_timeout(Some(CONNECT_LIMIT))?;
            stream.write_all(request.as_bytes())?;
            stream.take(HTTP_LIMIT).read_to_end(&mut answer)?;
        }
    }
    Ok(answer)
}

/// A name as part of a path.
pub fn percent_encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes().fold(String::new(), |mut out, byte| {
        if plain(byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
        out
    })
}
