//! The shared store against a real redis-server, killed, frozen, restarted and filled with rubbish.

mod embedders;
mod support;

use std::sync::Arc;
use std::time::{Duration, Instant};

use embedders::{Counting, documents, question_texts, settings};
use packlight::embed::{Embeddings, Space};
use packlight::retrieval::question::Question;
use packlight::store::{MAX_FIELDS, Op, Redis, Store};
use support::redis::{PATIENT, Server};

const HOUR: Duration = Duration::from_secs(3600);

/// What an embedder's replicas leave in it.
trait Vectors {
    fn vectors_key(&self, tools: usize) -> String;
    async fn published(&self);
}

impl Vectors for Server {
    /// The key of the packed buffer of this many tools, two rows each, without the store's prefix.
    fn vectors_key(&self, tools: usize) -> String {
        let keys = String::from_utf8(self.raw(&[b"KEYS", b"pl:tool-vectors:*"])).unwrap();
        let size = format!(":{}\r\n", 2 * tools * 64 * 4);
        let key = keys
            .lines()
            .find(|line| line.starts_with("pl:") && self.raw(&[b"STRLEN", line.as_bytes()]) == size.as_bytes());
        key.unwrap().strip_prefix("pl:").unwrap().to_owned()
    }

    /// Until the builder has left the packed buffers of the phrases and of one roster.
    async fn published(&self) {
        let give_up = Instant::now() + PATIENT;
        while !self.raw(&[b"KEYS", b"pl:tool-vectors*"]).starts_with(b"*2\r\n")
            || self.raw(&[b"KEYS", b"pl:tool-vectors-lock:*"]) != b"*0\r\n"
        {
            assert!(Instant::now() < give_up, "never published");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
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
        let failed = [Op::VectorsGet, Op::StashGet, Op::StashPut].contains(&op);
        assert_eq!(count, u64::from(failed), "{op:?}");
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

/// Does the space know its tools by their numbers?
async fn assert_sound(embeddings: &Embeddings, space: &Space) {
    for n in [0, 7, space.index.documents().len() - 1] {
        let question = Question::bare(&format!("tool number {n}"));
        let vectors = embeddings.queries(&space.model, question.texts()).await.unwrap();
        assert_eq!(space.index.rank(&question, &vectors)[0].tool, n);
    }
}

#[tokio::test]
async fn replicas_share_one_build_and_a_late_one_builds_nothing() {
    let server = Server::started();
    let embedder = Counting::new();
    let documents = documents(40);
    let replica = || Embeddings::over(embedder.clone(), None, &settings(), Arc::new(server.store()));
    let replicas = [replica(), replica(), replica()];
    embedder.hold();
    let building: Vec<_> = replicas
        .iter()
        .map(|replica| {
            let (replica, documents) = (Arc::clone(replica), Arc::clone(&documents));
            tokio::spawn(async move { replica.space(&documents).await.unwrap() })
        })
        .collect();
    embedder.called().await;
    embedder.release();
    let mut spaces = Vec::new();
    for space in building {
        spaces.push(space.await.unwrap());
    }
    // Each text once, by whichever replica.
    assert_eq!(embedder.documents(), question_texts(&documents));
    server.published().await;
    embedder.forget();
    let late = replica();
    let space = late.space(&documents).await.unwrap();
    assert_eq!(embedder.calls(), 0);
    assert_sound(&late, &space).await;
    for (replica, space) in replicas.iter().zip(&spaces) {
        assert_sound(replica, space).await;
    }
    let life = server.raw(&[b"TTL", format!("pl:{}", server.vectors_key(40)).as_bytes()]);
    assert!(life.len() > ":2000000".len(), "about 30 days: {life:?}");
}

/// Rubbish under the roster's key is a counted miss; the vectors are made instead and are right.
#[tokio::test]
async fn rubbish_in_the_place_of_vectors_is_never_used() {
    let server = Server::started();
    let embedder = Counting::new();
    let documents = documents(10);
    let replica = |store: &Arc<Redis>| Embeddings::over(embedder.clone(), None, &settings(), store.clone());
    replica(&Arc::new(server.store())).space(&documents).await.unwrap();
    server.published().await;
    let key = format!("pl:{}", server.vectors_key(10));
    let bytes = 10 * 64 * 4;
    let of = |number: f32| number.to_le_bytes().repeat(bytes / 4);
    let mut one_nan = of(0.125);
    one_nan[400..404].copy_from_slice(&f32::NAN.to_le_bytes());
    for rubbish in [
        Vec::new(),
        vec![0x41; 7],
        of(0.125)[4..].to_vec(),
        [of(0.125), vec![0; 4]].concat(),
        of(f32::NAN),
        of(f32::INFINITY),
        of(0.0),
        of(10.0),
        one_nan,
        vec![0x41; bytes],
    ] {
        server.raw(&[b"SET", key.as_bytes(), &rubbish]);
        let store = Arc::new(server.store());
        let embeddings = replica(&store);
        let space = embeddings.space(&documents).await.unwrap();
        assert_sound(&embeddings, &space).await;
        assert!(failures(&*store, Op::VectorsGet) > 0);
        // The right ones have taken the place of the rubbish.
        server.published().await;
        embeddings.shutdown().await;
    }
    server.raw(&[b"DEL", key.as_bytes()]);
    server.raw(&[b"HSET", key.as_bytes(), b"a", b"b"]);
    let store = Arc::new(server.store());
    let embeddings = replica(&store);
    let space = embeddings.space(&documents).await.unwrap();
    assert_sound(&embeddings, &space).await;
    assert!(failures(&*store, Op::VectorsGet) > 0);
}

#[tokio::test]
async fn a_builder_that_died_holds_nobody_up_for_ever() {
    let server = Server::started();
    let embedder = Counting::new();
    let documents = documents(10);
    let replica = || Embeddings::over(embedder.clone(), None, &settings(), Arc::new(server.store()));
    replica().space(&documents).await.unwrap();
    server.published().await;
    let key = server.vectors_key(10);
    let lock = key.replace("tool-vectors:", "tool-vectors-lock:");
    server.raw(&[b"DEL", format!("pl:{key}").as_bytes()]);
    server.raw(&[b"SET", format!("pl:{lock}").as_bytes(), b"1", b"PX", b"300"]);
    embedder.forget();
    let heir = replica();
    let space = heir.space(&documents).await.unwrap();
    assert_eq!(embedder.documents(), question_texts(&documents));
    assert_sound(&heir, &space).await;
}

#[tokio::test]
async fn a_store_that_is_gone_costs_the_build_and_nothing_else() {
    let mut server = Server::started();
    let embedder = Counting::new();
    let documents = documents(10);
    let store = Arc::new(Redis::new(&server.url(), "pl").unwrap());
    let embeddings = Embeddings::over(embedder.clone(), None, &settings(), store.clone());
    server.kill();
    let space = embeddings.space(&documents).await.unwrap();
    assert_sound(&embeddings, &space).await;
    assert!(failures(&*store, Op::VectorsGet) > 0);
    // Frozen: the same.
    server.start();
    server.signal("-STOP");
    let store = Arc::new(Redis::new(&server.url(), "pl").unwrap());
    let embeddings = Embeddings::over(embedder, None, &settings(), store.clone());
    let space = embeddings.space(&documents).await.unwrap();
    assert_sound(&embeddings, &space).await;
    assert!(failures(&*store, Op::VectorsGet) > 0);
}
