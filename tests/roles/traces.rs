//! Traces, received by a server that is generated from OpenTelemetry's published proto.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use diskplugin::csi::proto::controller_client::ControllerClient;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{TraceService, TraceServiceServer};
use opentelemetry_proto::tonic::collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status};

use crate::common::csi::volume;
use crate::common::fake::{Fake, KEY, SECRET};
use crate::common::wait::until;
use crate::running::{Running, SOON};

const TRACE_ID: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";

#[derive(Debug, Clone, Default)]
struct Collector(Arc<Mutex<Vec<Span>>>);

#[tonic::async_trait]
impl TraceService for Collector {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let resources = request.into_inner().resource_spans.into_iter();
        let scopes = resources.flat_map(|resource| resource.scope_spans);
        self.0.lock().unwrap().extend(scopes.flat_map(|scope| scope.spans));
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

impl Collector {
    /// Serves on a free port. Returns its URL.
    async fn serve(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let service = TraceServiceServer::new(self.clone());
        let server = tonic::transport::Server::builder().add_service(service);
        let serve = server.serve_with_incoming(TcpListenerStream::new(listener));
        diskplugin::base::Tasks::default().spawn(async move { serve.await.unwrap() });
        url
    }

    async fn span(&self, name: &str) -> Span {
        until(&format!("the span {name} is exported"), SOON, async || {
            let spans = self.0.lock().unwrap();
            spans.iter().find(|span| span.name == name).cloned()
        })
        .await
    }
}

/// A controller that exports its spans to a collector, each after this delay.
async fn traced(fake: &Fake, url: &str, delay: Duration) -> Running {
    let controller = Running::of(|socket| {
        let start = fake.controller(socket).keys().env("OTEL_EXPORTER_OTLP_ENDPOINT", url);
        start.env("OTEL_BSP_SCHEDULE_DELAY", delay.as_millis().to_string())
    });
    controller.await
}

fn hex(id: &[u8]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn attributes(span: &Span) -> HashMap<String, String> {
    let attributes = span.attributes.iter();
    let texts = attributes.filter_map(|one| match one.value.as_ref()?.value.as_ref()? {
        Value::StringValue(text) => Some((one.key.clone(), text.clone())),
        _ => None,
    });
    texts.collect()
}

#[tokio::test]
async fn spans_of_a_call_continue_the_trace_of_the_caller() {
    let fake = Fake::start(&[]).await;
    let collector = Collector::default();
    let delay = Duration::from_millis(50);
    let controller = traced(&fake, &collector.serve().await, delay).await;
    let mut request = Request::new(volume("pvc-traced"));
    let parent = format!("00-{TRACE_ID}-{PARENT}-01");
    request.metadata_mut().insert("traceparent", parent.parse().unwrap());
    let mut client = ControllerClient::new(controller.channel.clone());
    client.create_volume(request).await.unwrap();

    let rpc = collector.span("CreateVolume").await;
    assert_eq!(hex(&rpc.trace_id), TRACE_ID);
    assert_eq!(hex(&rpc.parent_span_id), PARENT);
    assert_eq!(rpc.kind(), SpanKind::Server);
    let own = attributes(&rpc);
    assert_eq!(own.get("volume.name").map(String::as_str), Some("pvc-traced"));
    assert!(own.get("disk.id").is_some_and(|id| id.starts_with("d-")), "{own:?}");
    let call = collector.span("CreateDisk").await;
    let calls = fake.calls().await;
    let create = calls.iter().find(|call| call["action"] == "CreateDisk").unwrap();
    let id = attributes(&call).remove("cloud.request_id");
    assert_eq!(
        id.as_deref(),
        create["request_id"].as_str().or(create["requestId"].as_str())
    );
    for span in [call, collector.span("poll").await] {
        assert_eq!(
            (hex(&span.trace_id).as_str(), span.parent_span_id),
            (TRACE_ID, rpc.span_id.clone())
        );
    }

    let log = controller.process.stderr();
    assert!(log.contains(&format!("trace_id={TRACE_ID}")), "{log}");
    let spans = format!("{:?}", collector.0.lock().unwrap());
    assert!(!spans.contains(SECRET) && !spans.contains(KEY), "{spans}");
}

#[tokio::test]
async fn an_unreachable_collector_does_not_delay_calls() {
    let fake = Fake::start(&[]).await;
    let delay = Duration::from_secs(5);
    let controller = traced(&fake, "http://127.0.0.1:9", delay).await;
    let volume = crate::common::csi::create(&controller.channel, "pvc-1").await;
    assert!(volume.is_ok(), "{volume:?}");
    controller.stop().await;
}

#[tokio::test]
async fn a_process_that_stops_exports_its_last_spans() {
    let fake = Fake::start(&[]).await;
    let collector = Collector::default();
    // Only the end of the process exports within the time of the test.
    let delay = Duration::from_mins(10);
    let controller = traced(&fake, &collector.serve().await, delay).await;
    let mut client = ControllerClient::new(controller.channel.clone());
    client.create_volume(volume("pvc-last")).await.unwrap();
    controller.stop().await;
    collector.span("CreateVolume").await;
}
