//! On whose behalf a call is made: the share of the devices is per client.

use tonic::Request;
use tonic::transport::server::{TcpConnectInfo, TlsConnectInfo, UdsConnectInfo};

/// Header by which a client names itself, for example one of several nodes behind one address.
pub(crate) const HEADER: &str = "cuzk-client";
/// Longest name, bytes.
const NAME_LIMIT: usize = 64;

/// The client's own name for itself, else its address, else `local`.
pub(super) fn name<T>(request: &Request<T>) -> String {
    let named = request
        .metadata()
        .get(HEADER)
        .and_then(|value| value.to_str().ok())
        .filter(|name| !name.is_empty() && name.len() <= NAME_LIMIT);
    if let Some(name) = named {
        return name.to_owned();
    }
    let extensions = request.extensions();
    let plain = extensions.get::<TcpConnectInfo>();
    let encrypted = extensions
        .get::<TlsConnectInfo<TcpConnectInfo>>()
        .map(TlsConnectInfo::get_ref);
    if let Some(address) = plain.or(encrypted).and_then(TcpConnectInfo::remote_addr) {
        return address.ip().to_string();
    }
    let user = extensions
        .get::<UdsConnectInfo>()
        .and_then(|info| info.peer_cred)
        .map(|peer| format!("local user {}", peer.uid()));
    user.unwrap_or_else(|| "local".to_owned())
}
