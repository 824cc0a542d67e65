//! A fake API server over HTTP: lists, watches, reads, updates, merge patches and creations, and injected errors.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;

use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;

use diskplugin::base::Tasks;

use crate::kubernetes::store::{Refused, Store};

type Body = BoxBody<Bytes, Infallible>;

/// The state of the server and its injected errors. It outlives restarts.
#[derive(Debug, Default)]
pub(crate) struct World {
    pub(crate) store: Store,
    /// Each request, as `METHOD path`; of a watch `WATCH path`.
    pub(crate) calls: Vec<String>,
    /// Beginnings of `METHOD path` that are forbidden.
    pub(crate) forbidden: Vec<String>,
    /// Patches that another client sends to these objects right before their next patch.
    pub(crate) overtaken: Vec<(String, Value)>,
    /// `VERB RESOURCE` that access reviews deny.
    pub(crate) denied_rights: Vec<String>,
    /// Users by bearer token, and the paths that each may get.
    pub(crate) users: BTreeMap<String, (String, Vec<String>)>,
    /// Texts at these paths, such as logs.
    pub(crate) texts: BTreeMap<String, String>,
    /// Maximum number of objects in a page.
    pub(crate) page: Option<usize>,
    events: u64,
}

#[derive(Debug)]
struct Shared {
    world: Mutex<World>,
    changed: watch::Sender<()>,
}

/// The server. It can stop and start again at the same address.
#[derive(Debug)]
pub(crate) struct Api {
    shared: Arc<Shared>,
    address: SocketAddr,
    running: Option<(CancellationToken, JoinHandle<()>)>,
}

impl Api {
    /// Serves on a free port of a loopback address of its own: parallel tests do not take the port between two starts.
    pub(crate) fn start() -> Self {
        static STARTED: AtomicU8 = AtomicU8::new(1);
        let [.., high, low] = std::process::id().to_be_bytes();
        let address = Ipv4Addr::new(127, high, low, STARTED.fetch_add(1, Ordering::Relaxed).max(1));
        let listener = TcpListener::bind((address, 0)).unwrap();
        let mut api = Self {
            shared: Arc::new(Shared {
                world: Mutex::default(),
                changed: watch::Sender::new(()),
            }),
            address: listener.local_addr().unwrap(),
            running: None,
        };
        api.serve(listener);
        api
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn read<T>(&self, read: impl FnOnce(&World) -> T) -> T {
        read(&self.world())
    }

    /// Changes the state, and notifies all watches.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut World) -> T) -> T {
        let outcome = change(&mut self.world());
        self.shared.changed.send_replace(());
        outcome
    }

    /// The number of requests with this beginning.
    pub(crate) fn count(&self, beginning: &str) -> usize {
        self.read(|world| world.calls.iter().filter(|call| call.starts_with(beginning)).count())
    }

    /// Stops: all connections are closed, and no new one is accepted.
    pub(crate) fn stop(&mut self) {
        if let Some((stop, thread)) = self.running.take() {
            stop.cancel();
            thread.join().unwrap();
        }
    }

    pub(crate) fn restart(&mut self) {
        self.serve(TcpListener::bind(self.address).unwrap());
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.shared.world.lock().unwrap()
    }

    fn serve(&mut self, listener: TcpListener) {
        listener.set_nonblocking(true).unwrap();
        let (stop, shared) = (CancellationToken::new(), Arc::clone(&self.shared));
        let until = stop.clone();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            // The end of the runtime closes the connections.
            runtime.block_on(until.run_until_cancelled(accept(listener, shared)));
        });
        self.running = Some((stop, thread));
    }
}

impl Drop for Api {
    fn drop(&mut self) {
        self.stop();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let listener = tokio::net::TcpListener::from_std(listener).unwrap();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let shared = Arc::clone(&shared);
        Tasks::default().spawn(async move {
            let service = service_fn(move |request| respond(Arc::clone(&shared), request));
            let connection = hyper::server::conn::http1::Builder::new();
            // The client reports errors.
            let _ = connection.serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn respond(shared: Arc<Shared>, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    let (head, body) = request.into_parts();
    let path = head.uri.path().to_owned();
    let query = head.uri.query().unwrap_or_default().to_owned();
    let body = body.collect().await.unwrap().to_bytes();
    let watches = query.split('&').any(|part| part == "watch=true");
    let verb = match watches {
        true => "WATCH".to_owned(),
        false => head.method.to_string(),
    };
    let call = format!("{verb} {path}");
    {
        let mut world = shared.world.lock().unwrap();
        world.calls.push(call.clone());
        if world.forbidden.iter().any(|one| call.starts_with(one)) {
            let words = format!("User \"system:serviceaccount:ns:it\" cannot do {call}");
            return Ok(status(403, "Forbidden", &words));
        }
    }
    if watches {
        let from = query.split('&').find_map(|part| part.strip_prefix("resourceVersion="));
        let from = from.and_then(|text| text.parse().ok()).unwrap_or(0);
        return Ok(follow(shared, path, from));
    }
    let mut world = shared.world.lock().unwrap();
    let given: Value = serde_json::from_slice(&body).unwrap_or_default();
    let response = reply(&mut world, &head.method, &path, &query, given);
    drop(world);
    shared.changed.send_replace(());
    Ok(response)
}

/// The resources that the driver lists.
const COLLECTIONS: &str = "
    pods csidrivers volumesnapshotclasses nodes csinodes configmaps events persistentvolumes persistentvolumeclaims
    volumeattachments volumesnapshotcontents volumegroupsnapshotcontents deployments daemonsets storageclasses
";

fn reply(world: &mut World, method: &Method, path: &str, query: &str, given: Value) -> Response<Body> {
    let name = path.rsplit('/').next().unwrap_or_default();
    let is_list = COLLECTIONS.split_whitespace().any(|collection| collection == name);
    if let Some(text) = world.texts.get(path) {
        return Response::new(Full::new(Bytes::from(text.clone())).boxed());
    }
    match *method {
        Method::GET if is_list => {
            let (version, mut items) = world.store.list(path);
            if let Some(name) = involved_object(query) {
                items.retain(|event| event["involvedObject"]["name"] == name);
            }
            let mut list = json!({"metadata": {"resourceVersion": version.to_string()}});
            let limit = number(query, "limit").map(|limit| limit.min(world.page.unwrap_or(limit)));
            let from = number(query, "continue").unwrap_or(0);
            let mut rest = items.into_iter().skip(from);
            let items: Vec<_> = rest.by_ref().take(limit.unwrap_or(usize::MAX)).collect();
            if rest.next().is_some() {
                list["metadata"]["continue"] = json!((from + items.len()).to_string());
            }
            list["items"] = json!(items);
            full(200, &list)
        }
        Method::GET => match world.store.get(path) {
            Some(object) => full(200, object),
            None => status(404, "NotFound", path),
        },
        Method::POST if path.ends_with("/selfsubjectaccessreviews") => {
            let mut review = given;
            let text = |field| review["spec"]["resourceAttributes"][field].as_str();
            let right = format!("{} {}", text("verb").unwrap(), text("resource").unwrap());
            review["status"] = json!({"allowed": !world.denied_rights.contains(&right)});
            full(201, &review)
        }
        Method::POST if path.ends_with("/tokenreviews") => {
            let mut review = given;
            let token = review["spec"]["token"].as_str().unwrap();
            let user = world.users.get(token).map(|(user, _)| user.clone());
            review["status"] = json!({"authenticated": user.is_some(), "user": {"username": user}});
            full(201, &review)
        }
        Method::POST if path.ends_with("/subjectaccessreviews") => {
            let mut review = given;
            let user = review["spec"]["user"].as_str().unwrap();
            let page = review["spec"]["nonResourceAttributes"]["path"].as_str();
            let mut users = world.users.values();
            let allowed = users.any(|(name, pages)| name == user && pages.iter().any(|own| Some(own.as_str()) == page));
            review["status"] = json!({"allowed": allowed});
            full(201, &review)
        }
        Method::POST => {
            world.events += 1;
            let name = given.pointer("/metadata/name").and_then(Value::as_str);
            let place = format!("{path}/{}", name.unwrap_or("unnamed"));
            if name.is_some() && world.store.get(&place).is_some() {
                return status(409, "AlreadyExists", &place);
            }
            full(201, &world.store.put(&place, given))
        }
        Method::PUT => written(path, world.store.replace(path, given)),
        Method::PATCH => {
            let overtaken = world.overtaken.iter().position(|(place, _)| place == path);
            if let Some(index) = overtaken {
                let (place, patch) = world.overtaken.remove(index);
                world.store.patch(&place, &patch).unwrap();
            }
            written(path, world.store.patch(path, &given))
        }
        _ => status(405, "MethodNotAllowed", path),
    }
}

fn written(path: &str, outcome: Result<Value, Refused>) -> Response<Body> {
    match outcome {
        Ok(object) => full(200, &object),
        Err(Refused::Missing) => status(404, "NotFound", path),
        Err(Refused::Conflict) => status(409, "Conflict", "the object has been modified"),
    }
}

/// The name in a field selector for events.
fn involved_object(query: &str) -> Option<String> {
    let mut parts = query.split('&');
    let selector = parts.find_map(|part| part.strip_prefix("fieldSelector="))?;
    let selector = selector.replace("%3D", "=").replace("%2F", "/");
    let name = selector.strip_prefix("involvedObject.name=")?;
    Some(name.to_owned())
}

/// A number in a query.
fn number(query: &str, name: &str) -> Option<usize> {
    let mut parts = query.split('&');
    let text = parts.find_map(|part| part.strip_prefix(name)?.strip_prefix('='))?;
    text.parse().ok()
}

/// A watch: the events after that version, then new ones while the client reads.
fn follow(shared: Arc<Shared>, path: String, mut from: u64) -> Response<Body> {
    let (lines, body) = mpsc::channel(16);
    let mut changed = shared.changed.subscribe();
    Tasks::default().spawn(async move {
        loop {
            let (version, events) = shared.world.lock().unwrap().store.since(&path, from);
            from = version;
            for event in events {
                let line = Frame::data(Bytes::from(format!("{event}\n")));
                if lines.send(Ok::<_, Infallible>(line)).await.is_err() {
                    return;
                }
            }
            if changed.changed().await.is_err() {
                return;
            }
        }
    });
    let body = StreamBody::new(ReceiverStream::new(body));
    Response::new(BodyExt::boxed(body))
}

fn full(code: u16, value: &Value) -> Response<Body> {
    let body = Full::new(Bytes::from(value.to_string())).boxed();
    let response = Response::builder().status(code);
    response.header("content-type", "application/json").body(body).unwrap()
}

fn status(code: u16, reason: &str, message: &str) -> Response<Body> {
    let value = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "code": code, "reason": reason, "message": message,
    });
    full(code, &value)
}
