//! The store that replicas share. Every operation, connecting included, ends within one deadline; while the server is
//! known to be away a miss costs nothing. NOT a retry loop: the caller goes on without the value.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, ErrorKind, FromRedisValue, Pipeline, RedisError};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use super::{Answer, Failures, MAX_FIELDS, Op, Store};

/// Longest that one operation may hold a turn up.
const DEADLINE: Duration = Duration::from_millis(50);
/// How long a server that failed is left alone.
const REST: Duration = Duration::from_secs(1);
/// Keys looked at with one command when some are forgotten.
const SCANNED: usize = 500;
/// Connecting goes on in the background for this long, past the operation that began it.
const CONNECT: Duration = Duration::from_secs(2);

/// The URL names no Redis. It may hold a password, so it is not repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is not a Redis URL: write redis://host:port, redis://user:password@host:port/db or unix:///path")]
pub struct BadUrl;

/// Bytes on Redis, under `<prefix>:<key>`.
pub struct Redis {
    client: Client,
    prefix: String,
    deadline: Duration,
    rest: Duration,
    failures: Failures,
    link: watch::Sender<Link>,
    upkeep: Mutex<Upkeep>,
    /// It failed and has not answered since: said once, not with each request.
    away: AtomicBool,
}

/// Name and value, as the server has them.
type Field = (Vec<u8>, Vec<u8>);

/// Where the connection stands.
#[derive(Clone)]
enum Link {
    Down,
    Connecting,
    /// The number tells this connection from the next: a late failure must not close its successor.
    Up(u64, MultiplexedConnection),
}

#[derive(Default)]
struct Upkeep {
    /// The server failed: until then every operation is a miss at once.
    resting: Option<Instant>,
    /// Connections so far.
    serial: u64,
    connecting: Option<AbortOnDropHandle<()>>,
}

impl std::fmt::Debug for Redis {
    /// Without the client, whose address may hold a password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redis").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

impl Redis {
    /// Touches no socket: the first operation connects.
    pub fn new(url: &str, prefix: &str) -> Result<Self, BadUrl> {
        Self::with_deadline(url, prefix, DEADLINE, REST)
    }

    /// As [`Self::new`], with the longest time for one operation and the time a failed server is left alone.
    pub fn with_deadline(url: &str, prefix: &str, deadline: Duration, rest: Duration) -> Result<Self, BadUrl> {
        Ok(Self {
            client: Client::open(url).map_err(|_| BadUrl)?,
            prefix: prefix.to_owned(),
            deadline,
            rest,
            failures: Failures::default(),
            link: watch::Sender::new(Link::Down),
            upkeep: Mutex::default(),
            away: AtomicBool::new(false),
        })
    }

    fn key(&self, key: &str) -> String {
        format!("{}:{key}", self.prefix)
    }

    /// Runs the commands. `None`: the store failed, and that is counted.
    async fn run<T: FromRedisValue>(&self, op: Op, commands: Pipeline) -> Option<T> {
        let answer = self.ask(commands).await;
        if answer.is_none() {
            self.failures.count(op);
        }
        answer
    }

    async fn ask<T: FromRedisValue>(&self, commands: Pipeline) -> Option<T> {
        let give_up = tokio::time::Instant::now() + self.deadline;
        let (serial, mut connection) = match tokio::time::timeout_at(give_up, self.connection()).await {
            Ok(connection) => connection?,
            Err(_) => {
                self.rest();
                return None;
            }
        };
        match tokio::time::timeout_at(give_up, commands.query_async(&mut connection)).await {
            Ok(Ok(value)) => {
                if self.away.load(Ordering::Relaxed) && self.away.swap(false, Ordering::Relaxed) {
                    tracing::info!("redis answers again");
                }
                Some(value)
            }
            Ok(Err(error)) => {
                if !is_answer(&error) {
                    self.drop_link(serial);
                }
                tracing::debug!(kind = ?error.kind(), "redis refused a command");
                None
            }
            // A peer that vanished without a word never errs: the connection goes with the silence.
            Err(_) => {
                self.drop_link(serial);
                self.rest();
                None
            }
        }
    }

    /// The open connection, or the one that is being opened. `None`: the server failed a moment ago.
    async fn connection(&self) -> Option<(u64, MultiplexedConnection)> {
        self.begin_connecting()?;
        let mut link = self.link.subscribe();
        let settled = link.wait_for(|link| !matches!(link, Link::Connecting)).await.ok()?;
        match &*settled {
            Link::Up(serial, connection) => Some((*serial, connection.clone())),
            Link::Down | Link::Connecting => {
                drop(settled);
                self.rest();
                None
            }
        }
    }

    /// Starts connecting unless that is under way or done. `None`: the server is left alone for now.
    fn begin_connecting(&self) -> Option<()> {
        if matches!(&*self.link.borrow(), Link::Up(..)) {
            return Some(());
        }
        let mut upkeep = self.upkeep.lock().unwrap_or_else(PoisonError::into_inner);
        if upkeep.resting.is_some_and(|until| Instant::now() < until) {
            return None;
        }
        let begun = self.link.send_if_modified(|link| {
            let down = matches!(link, Link::Down);
            if down {
                *link = Link::Connecting;
            }
            down
        });
        if begun {
            upkeep.serial += 1;
            let (client, link, serial) = (self.client.clone(), self.link.clone(), upkeep.serial);
            // Bounded by `CONNECT`, and ended with the store.
            upkeep.connecting = Some(AbortOnDropHandle::new(tokio::spawn(async move {
                let config =
                    AsyncConnectionConfig::new().set_connection_timeout(Some(CONNECT)).set_response_timeout(None);
                let connecting = client.get_multiplexed_async_connection_with_config(&config);
                match tokio::time::timeout(CONNECT, connecting).await {
                    Ok(Ok(connection)) => link.send_replace(Link::Up(serial, connection)),
                    Ok(Err(error)) => {
                        // A wrong password shows here, as its kind.
                        tracing::debug!(kind = ?error.kind(), "redis refused the connection");
                        link.send_replace(Link::Down)
                    }
                    Err(_) => link.send_replace(Link::Down),
                };
            })));
        }
        Some(())
    }

    fn drop_link(&self, failed: u64) {
        self.link.send_if_modified(|link| {
            let same = matches!(link, Link::Up(serial, _) if *serial == failed);
            if same {
                *link = Link::Down;
            }
            same
        });
    }

    fn rest(&self) {
        if !self.away.swap(true, Ordering::Relaxed) {
            tracing::warn!("redis cannot be reached or does not answer in time: going on without it until it does");
        }
        self.upkeep.lock().unwrap_or_else(PoisonError::into_inner).resting = Some(Instant::now() + self.rest);
    }
}

impl Store for Redis {
    fn get<'a>(&'a self, op: Op, key: &'a str) -> Answer<'a, Option<Vec<u8>>> {
        Box::pin(async move {
            let mut commands = Pipeline::new();
            commands.get(self.key(key));
            let (value,): (Option<Vec<u8>>,) = self.run(op, commands).await?;
            value
        })
    }

    fn put<'a>(&'a self, op: Op, key: &'a str, value: Vec<u8>, life: Option<Duration>) -> Answer<'a, ()> {
        Box::pin(async move {
            let mut commands = Pipeline::new();
            match life {
                Some(life) => commands.pset_ex(self.key(key), value, millis(life)).ignore(),
                None => commands.set(self.key(key), value).ignore(),
            };
            self.run::<()>(op, commands).await.unwrap_or_default();
        })
    }

    fn fields<'a>(&'a self, op: Op, key: &'a str) -> Answer<'a, Vec<(String, Vec<u8>)>> {
        Box::pin(async move {
            let mut commands = Pipeline::new();
            commands.hgetall(self.key(key));
            let (fields,): (Vec<Field>,) = self.run(op, commands).await.unwrap_or_default();
            // A name that is not text is none of ours.
            fields.into_iter().filter_map(|(name, value)| Some((String::from_utf8(name).ok()?, value))).collect()
        })
    }

    fn put_field<'a>(&'a self, op: Op, key: &'a str, field: &'a str, value: Vec<u8>, life: Duration) -> Answer<'a, ()> {
        Box::pin(async move {
            let key = self.key(key);
            let mut commands = Pipeline::new();
            commands.hset(&key, field, value).ignore().pexpire(&key, signed_millis(life)).ignore().hkeys(&key);
            let Some((names,)): Option<(Vec<Vec<u8>>,)> = self.run(op, commands).await else { return };
            let over = names.len().saturating_sub(MAX_FIELDS);
            if over > 0 {
                let old: Vec<_> = names.into_iter().filter(|name| name != field.as_bytes()).take(over).collect();
                let mut commands = Pipeline::new();
                commands.hdel(&key, old).ignore();
                self.run::<()>(op, commands).await.unwrap_or_default();
            }
        })
    }

    fn forget<'a>(&'a self, op: Op, beginning: &'a str) -> Answer<'a, usize> {
        Box::pin(async move {
            let pattern = format!("{}*", self.key(beginning));
            let (mut cursor, mut forgotten) = (0u64, 0);
            loop {
                let mut commands = Pipeline::new();
                commands.cmd("SCAN").arg(cursor).arg("MATCH").arg(&pattern).arg("COUNT").arg(SCANNED);
                let Some(((next, keys),)): Option<((u64, Vec<Vec<u8>>),)> = self.run(op, commands).await else { break };
                if !keys.is_empty() {
                    forgotten += keys.len();
                    let mut commands = Pipeline::new();
                    commands.del(keys).ignore();
                    self.run::<()>(op, commands).await.unwrap_or_default();
                }
                cursor = next;
                if cursor == 0 {
                    break;
                }
            }
            forgotten
        })
    }

    fn errors(&self) -> Vec<(Op, u64)> {
        self.failures.read()
    }

    fn claim<'a>(&'a self, op: Op, key: &'a str, life: Duration) -> Answer<'a, bool> {
        Box::pin(async move {
            let mut commands = Pipeline::new();
            commands.cmd("SET").arg(self.key(key)).arg(1).arg("NX").arg("PX").arg(millis(life));
            let taken: Option<(Option<()>,)> = self.run(op, commands).await;
            !matches!(taken, Some((None,)))
        })
    }

    fn release<'a>(&'a self, op: Op, key: &'a str) -> Answer<'a, ()> {
        Box::pin(async move {
            let mut commands = Pipeline::new();
            commands.del(self.key(key)).ignore();
            self.run::<()>(op, commands).await.unwrap_or_default();
        })
    }

    fn count(&self, op: Op) {
        self.failures.count(op);
    }
}

/// Did the server answer, be it with a refusal? Then the connection is sound.
fn is_answer(error: &RedisError) -> bool {
    matches!(error.kind(), ErrorKind::Server(_) | ErrorKind::Extension | ErrorKind::UnexpectedReturnType)
}

fn millis(life: Duration) -> u64 {
    u64::try_from(life.as_millis()).unwrap_or(u64::MAX).max(1)
}

fn signed_millis(life: Duration) -> i64 {
    i64::try_from(life.as_millis()).unwrap_or(i64::MAX).max(1)
}
