//! The shared store against a real redis-server, killed, frozen, restarted and filled with rubbish.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use packlight::store::{MAX_FIELDS, Op, Redis, Store};

const HOUR: Duration = Duration::from_secs(3600);
/// For what must work on a busy machine; what must fail fast uses `Redis::new`, as the program does.
const PATIENT: Duration = Duration::from_secs(20);

/// A redis-server of this test's own.
struct Server {
    port: u16,
    process: Option<Child>,
    folder: tempfile::TempDir,
}

impl Server {
    /// A free port, with nobody on it yet.
    fn reserved() -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        Self { port, process: None, folder: tempfile::tempdir().unwrap() }
    }

    fn started() -> Self {
        let mut server = Self::reserved();
        server.start();
        server
    }

    fn start(&mut self) {
        let process = Command::new("redis-server")
            .args(["--port", &self.port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
            .arg("--dir")
            .arg(self.folder.path())
            .stdout(Stdio::null())
            .spawn()
            .expect("redis-server is missing: apt-get install redis-server (Debian), brew install redis (macOS)");
        self.process = Some(process);
        let give_up = Instant::now() + PATIENT;
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(Instant::now() < give_up, "redis-server did not start");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    fn signal(&self, signal: &str) {
        let pid = self.process.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }

    fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// A store as the program opens it, but for a machine that is busy with tests.
    fn store(&self) -> Redis {
        Redis::with_deadline(&self.url(), "pl", PATIENT, Duration::ZERO).unwrap()
    }

    /// One command past the store, each word as it stands; the reply as it came.
    fn raw(&self, words: &[&[u8]]) -> Vec<u8> {
        let mut socket = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let mut command = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            command.extend(format!("${}\r\n", word.len()).bytes());
            command.extend(*word);
            command.extend(b"\r\n");
        }
        command.extend(b"*1\r\n$4\r\nQUIT\r\n");
        socket.write_all(&command).unwrap();
        let mut reply = Vec::new();
        socket.read_to_end(&mut reply).unwrap();
        reply.strip_suffix(b"+OK\r\n").unwrap().to_vec()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

fn failures(store: &dyn Store, op: Op) -> u64 {
    store.errors().into_iter().find(|(other, _)| *other == op).unwrap().1
}

#[tokio::test]
async fn the_stash_comes_back_field_by_field_and_expires() {
    let server = Server::started();
    let store = server.store();
    store.put_field(Op::StashPut, "stash:1", "a", b"one".to_vec(), HOUR).await;
    store.put_field(Op::StashPut, "stash:1", "b", b"\x00\xff\r\n".to_vec(), HOUR).await;
    store.put_field(Op::StashPut, "stash:1", "a", b"two".to_vec(), HOUR).await;
    let mut fields = store.fields(Op::StashGet, "stash:1").await;
    fields.sort();
    assert_eq!(fields, [("a".to_owned(), b"two".to_vec()), ("b".to_owned(), b"\x00\xff\r\n".to_vec())]);
    let life = String::from_utf8(server.raw(&[b"TTL", b"pl:stash:1"])).unwrap();
    let life: u64 = life.trim_start_matches(':').trim().parse().unwrap();
    assert!((3500..=3600).contains(&life), "{life}");
    // A field that is not text was not written here.
    server.raw(&[b"HSET", b"pl:stash:1", b"\xff", b"foreign"]);
    assert_eq!(store.fields(Op::StashGet, "stash:1").await.len(), 2);
    assert_eq!(store.errors().iter().map(|(_, count)| count).sum::<u64>(), 0);
}

#[tokio::test]
async fn a_stash_is_bounded_and_keeps_its_newest_field() {
    let server = Server::started();
    let store = server.store();
    for i in 0..MAX_FIELDS + 20 {
        store.put_field(Op::StashPut, "s", &format!("f{i}"), vec![1], HOUR).await;
        let fields = store.fields(Op::StashGet, "s").await;
        assert!(fields.len() <= MAX_FIELDS);
        assert!(fields.iter().any(|(name, _)| *name == format!("f{i}")));
    }
}

#[tokio::test]
async fn bytes_come_back_as_they_were_with_and_without_an_end() {
    let server = Server::started();
    let store = server.store();
    let large: Vec<u8> = (0..2_000_000_u32).map(|i| i as u8).collect();
    store.put(Op::VectorsPut, "v", large.clone(), Some(HOUR)).await;
    store.put(Op::VectorsPut, "w", Vec::new(), None).await;
    assert_eq!(store.get(Op::VectorsGet, "v").await, Some(large));
    assert_eq!(store.get(Op::VectorsGet, "w").await, Some(Vec::new()));
    assert_eq!(store.get(Op::VectorsGet, "none").await, None);
    assert!(server.raw(&[b"PTTL", b"pl:v"]) > b":0".to_vec());
    assert_eq!(server.raw(&[b"PTTL", b"pl:w"]), b":-1\r\n");
    assert_eq!(store.errors().iter().map(|(_, count)| count).sum::<u64>(), 0);
}

#[tokio::test]
async fn a_claim_is_exclusive_until_released() {
    let server = Server::started();
    let (one, two) = (server.store(), server.store());
    assert!(one.claim(Op::VectorsPut, "lock", HOUR).await);
    assert!(!two.claim(Op::VectorsPut, "lock", HOUR).await);
    one.release(Op::VectorsPut, "lock").await;
    assert!(two.claim(Op::VectorsPut, "lock", HOUR).await);
}

#[tokio::test]
async fn a_key_of_another_type_is_a_counted_miss_and_the_connection_stays() {
    let server = Server::started();
    let store = server.store();
    server.raw(&[b"RPUSH", b"pl:list", b"x"]);
    assert_eq!(store.get(Op::VectorsGet, "list").await, None);
    assert!(store.fields(Op::StashGet, "list").await.is_empty());
    store.put_field(Op::StashPut, "list", "a", vec![1], HOUR).await;
    for (op, count) in store.errors() {
        assert_eq!(count, u64::from(op != Op::VectorsPut), "{op:?}");
    }
    store.put(Op::VectorsPut, "v", vec![1], None).await;
    assert_eq!(store.get(Op::VectorsGet, "v").await, Some(vec![1]));
}

#[tokio::test]
async fn down_at_start_is_a_miss_and_comes_up_by_itself() {
    let mut server = Server::reserved();
    let store = server.store();
    assert_eq!(store.get(Op::VectorsGet, "v").await, None);
    store.put(Op::VectorsPut, "v", vec![1], None).await;
    assert_eq!((failures(&store, Op::VectorsGet), failures(&store, Op::VectorsPut)), (1, 1));
    server.start();
    store.put(Op::VectorsPut, "v", vec![1], None).await;
    assert_eq!(store.get(Op::VectorsGet, "v").await, Some(vec![1]));
}

#[tokio::test]
async fn killed_is_a_miss_and_restarted_is_found_again() {
    let mut server = Server::started();
    let store = server.store();
    store.put(Op::VectorsPut, "v", vec![1], None).await;
    assert_eq!(store.get(Op::VectorsGet, "v").await, Some(vec![1]));
    server.kill();
    assert_eq!(store.get(Op::VectorsGet, "v").await, None);
    assert_eq!(store.get(Op::VectorsGet, "v").await, None);
    assert_eq!(failures(&store, Op::VectorsGet), 2);
    server.start();
    let give_up = Instant::now() + PATIENT;
    while store.get(Op::VectorsGet, "v").await.is_none() {
        assert!(Instant::now() < give_up, "never connected again");
        store.put(Op::VectorsPut, "v", vec![2], None).await;
    }
}

/// The deadline of the program, 50 ms, bounds each operation; after the first the server is left alone, so that not
/// each request pays it.
#[tokio::test]
async fn frozen_costs_one_deadline_and_thaws_by_itself() {
    let server = Server::started();
    let fast = Redis::with_deadline(&server.url(), "pl", Duration::from_millis(50), HOUR).unwrap();
    let thawing = Redis::with_deadline(&server.url(), "pl", Duration::from_millis(50), Duration::ZERO).unwrap();
    server.signal("-STOP");
    // A connection cannot be greeted either: connecting counts against the deadline. 300 misses, one deadline.
    let begun = Instant::now();
    for _ in 0..100 {
        assert_eq!(fast.get(Op::VectorsGet, "v").await, None);
        assert!(fast.fields(Op::StashGet, "s").await.is_empty());
        fast.put_field(Op::StashPut, "s", "f", vec![1], HOUR).await;
    }
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert_eq!(failures(&fast, Op::VectorsGet), 100);
    assert_eq!(thawing.get(Op::VectorsGet, "v").await, None);
    server.signal("-CONT");
    let give_up = Instant::now() + PATIENT;
    while thawing.get(Op::VectorsGet, "v").await.is_none() {
        assert!(Instant::now() < give_up, "never thawed");
        thawing.put(Op::VectorsPut, "v", vec![1], None).await;
    }
    // Frozen with the connection open: the operation in flight ends too.
    server.signal("-STOP");
    assert_eq!(thawing.get(Op::VectorsGet, "v").await, None);
    server.signal("-CONT");
}

#[test]
fn a_bad_url_is_refused_without_repeating_it() {
    for url in ["redis://:hunter2@", "http://user:hunter2@host", ""] {
        let error = Redis::new(url, "pl").unwrap_err();
        assert!(!format!("{error}{error:?}").contains("hunter2"), "{url}");
    }
    let store = Redis::new("redis://:hunter2@127.0.0.1:1", "pl").unwrap();
    assert!(!format!("{store:?}").contains("hunter2"));
}
