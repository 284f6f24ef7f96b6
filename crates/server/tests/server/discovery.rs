//! Reflection and health, as tools use them.

use crate::common::{daemon, quick};
use server::Part;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

async fn channel(daemon: &crate::common::Daemon) -> tonic::transport::Channel {
    let uri = format!("http://{}", daemon.server.grpc_address());
    let endpoint = tonic::transport::Endpoint::from_shared(uri).unwrap();
    endpoint.connect().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_find_the_service_and_its_file() {
    let daemon = daemon(quick());
    let mut client = ServerReflectionClient::new(channel(&daemon).await);
    let ask = |question| ServerReflectionRequest {
        host: String::new(),
        message_request: Some(question),
    };
    let questions = [
        ask(MessageRequest::ListServices(String::new())),
        ask(MessageRequest::FileContainingSymbol(
            "cuzk.v1.ProvingEngine".to_owned(),
        )),
    ];
    let stream = tokio_stream::iter(questions);
    let mut answers = client
        .server_reflection_info(stream)
        .await
        .unwrap()
        .into_inner();
    let list = answers
        .message()
        .await
        .unwrap()
        .unwrap()
        .message_response
        .unwrap();
    let MessageResponse::ListServicesResponse(list) = list else {
        panic!("{list:?}");
    };
    let names: Vec<_> = list
        .service
        .iter()
        .map(|service| service.name.as_str())
        .collect();
    assert!(names.contains(&"cuzk.v1.ProvingEngine"), "{names:?}");
    assert!(names.contains(&"grpc.health.v1.Health"), "{names:?}");
    let file = answers
        .message()
        .await
        .unwrap()
        .unwrap()
        .message_response
        .unwrap();
    let MessageResponse::FileDescriptorResponse(file) = file else {
        panic!("{file:?}");
    };
    let text = String::from_utf8_lossy(&file.file_descriptor_proto[0]).into_owned();
    assert!(text.contains("cuzk/v1/proving.proto") && text.contains("SubmitProofRequest"));
}

#[tokio::test(flavor = "multi_thread")]
async fn health_follows_readiness() {
    let daemon = daemon(quick());
    let mut client = HealthClient::new(channel(&daemon).await);
    let mut becomes = async |expected: ServingStatus| {
        for service in ["", "cuzk.v1.ProvingEngine"] {
            let mut found = ServingStatus::Unknown;
            for _ in 0..100 {
                let service = service.to_owned();
                let answer = client.check(HealthCheckRequest { service }).await;
                found = answer.map_or(ServingStatus::Unknown, |answer| {
                    answer.into_inner().status()
                });
                if found == expected {
                    break;
                }
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
            assert_eq!(found, expected, "{service:?}");
        }
    };
    becomes(ServingStatus::Serving).await;
    daemon.readiness.failed(Part::Keys, "gone");
    becomes(ServingStatus::NotServing).await;
}
