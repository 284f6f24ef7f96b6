//! TLS, certificates of clients, and addresses that others can reach.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::common::{Daemon, daemon_with, quick};
use server::client::{self, ClientError, Options};
use server::proto::v1::GetStatusRequest;
use server::{Config, Error, Observatory, Readiness, Server, ServerSettings};

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/server/tls")
        .join(name)
}

fn encrypted(clients: bool) -> Daemon {
    daemon_with(quick(), &move |_, config, _| {
        let security = &mut config.security;
        security.require_tls = true;
        security.identity = Some((file("server.pem"), file("server.key")));
        security.client_ca = clients.then(|| file("ca.pem"));
    })
}

/// Whether a call comes through: with TLS 1.3 a client's certificate is judged after connecting.
async fn answers(daemon: &Daemon, options: &Options) -> bool {
    let Ok(mut calls) = client::connect(daemon.server.grpc_address(), options).await else {
        return false;
    };
    calls.get_status(GetStatusRequest {}).await.is_ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn only_those_who_speak_tls_are_heard() {
    let daemon = encrypted(false);
    let trusting = Options {
        authorities: Some(file("ca.pem")),
        ..Options::default()
    };
    assert!(answers(&daemon, &trusting).await);
    assert!(!answers(&daemon, &Options::default()).await);
    let distrusting = Options {
        authorities: Some(file("client.pem")),
        ..Options::default()
    };
    assert!(!answers(&daemon, &distrusting).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_show_certificates_where_they_are_asked_for() {
    let daemon = encrypted(true);
    let nameless = Options {
        authorities: Some(file("ca.pem")),
        ..Options::default()
    };
    assert!(!answers(&daemon, &nameless).await);
    let known = Options {
        identity: Some((file("client.pem"), file("client.key"))),
        ..nameless.clone()
    };
    assert!(answers(&daemon, &known).await);
    // The server's certificate is not one for clients.
    let wrong = Options {
        identity: Some((file("server.pem"), file("server.key"))),
        ..nameless
    };
    assert!(!answers(&daemon, &wrong).await);
}

#[test]
fn addresses_that_others_can_reach_need_tls_where_it_is_required() {
    let whole = daemon_with(quick(), &|_, _, _| {});
    let start = |tune: &dyn Fn(&mut Config)| {
        let mut config = Config::default();
        config.daemon.listen = "127.0.0.1:0".parse().unwrap();
        tune(&mut config);
        let settings = ServerSettings {
            config,
            observatory: Arc::new(Observatory::new()),
            readiness: Arc::new(Readiness::default()),
        };
        let keys = Arc::clone(&whole.keys) as Arc<dyn server::Keys>;
        Server::start(settings, Arc::clone(&whole.service), keys)
    };
    let public = |config: &mut Config| config.daemon.listen = "0.0.0.0:0".parse().unwrap();
    assert!(start(&public).is_ok());
    let refused = start(&|config| {
        public(config);
        config.security.require_tls = true;
    });
    assert!(matches!(refused, Err(Error::NotEncrypted { .. })));
    // HTTP is never encrypted.
    let refused = start(&|config| {
        config.security.require_tls = true;
        config.security.identity = Some((file("server.pem"), file("server.key")));
        config.daemon.status_listen = Some("0.0.0.0:0".parse().unwrap());
    });
    assert!(matches!(refused, Err(Error::NotEncrypted { .. })));
    for (certificate, key) in [("none.pem", "server.key"), ("server.pem", "ca.pem")] {
        let refused = start(&|config| {
            config.security.identity = Some((file(certificate), file(key)));
        });
        let error = refused.err().unwrap();
        assert!(error.to_string().contains("tls_"), "{error}");
    }
}

#[test]
fn files_of_ours_that_are_missing_are_named() {
    let options = Options {
        authorities: Some(file("none.pem")),
        ..Options::default()
    };
    let address = "127.0.0.1:1".parse().unwrap();
    let error = client::Client::connect(&address, &options).err().unwrap();
    assert!(matches!(error, ClientError::File { .. }));
    assert!(error.to_string().contains("none.pem"), "{error}");
}
