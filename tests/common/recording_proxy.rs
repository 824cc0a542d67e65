//! A TCP proxy that records what clients send.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use diskplugin::base::Tasks;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::{TcpListener, TcpStream};

/// Forwards every connection to the server.
#[derive(Debug)]
pub(crate) struct RecordingProxy {
    pub(crate) url: String,
    sent: Arc<Mutex<Vec<u8>>>,
}

impl RecordingProxy {
    /// A proxy of the server, which runs until the end of the test.
    pub(crate) async fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("it is bound"));
        let sent = Arc::<Mutex<Vec<u8>>>::default();
        let (tasks, memory) = (Tasks::default(), Arc::clone(&sent));
        tasks.clone().spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let memory = Arc::clone(&memory);
                tasks.spawn(async move {
                    // Some tests break connections on purpose.
                    let _ = forward(client, server, &memory).await;
                });
            }
        });
        Self { url, sent }
    }

    /// All bytes sent by clients.
    pub(crate) fn sent(&self) -> String {
        let sent = self.sent.lock().expect("nobody panics with it");
        String::from_utf8_lossy(&sent).into_owned()
    }
}

async fn forward(client: TcpStream, server: SocketAddr, memory: &Mutex<Vec<u8>>) -> std::io::Result<()> {
    let server = TcpStream::connect(server).await?;
    let ((mut from_client, mut to_client), (mut from_server, mut to_server)) =
        (client.into_split(), server.into_split());
    let requests = async {
        let mut buffer = vec![0; 1 << 16];
        loop {
            let count = from_client.read(&mut buffer).await?;
            if count == 0 {
                return Ok(());
            }
            let read = &buffer[..count];
            memory.lock().expect("not poisoned").extend_from_slice(read);
            to_server.write_all(read).await?;
        }
    };
    let responses = async { copy(&mut from_server, &mut to_client).await.map(|_| ()) };
    tokio::select! {
        ended = requests => ended,
        ended = responses => ended,
    }
}
