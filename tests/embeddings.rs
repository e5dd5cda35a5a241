//! The embedding service over an embedder that counts: what is embedded, how often, and what happens when it fails.

mod embedders;

use std::sync::Arc;
use std::time::{Duration, Instant};

use embedders::{Counting, PATIENT, best, documents, memory, question_texts, settings};
use packlight::embed::{Embeddings, Readiness, Settings};
use packlight::retrieval::embedder::EmbedError;

#[tokio::test]
async fn fifty_callers_share_one_build_and_one_query() {
    let embedder = Counting::new();
    let embeddings = Embeddings::over(embedder.clone(), None, &settings(), memory());
    let documents = documents(40);
    embedder.hold();
    let callers: Vec<_> = (0..50)
        .map(|_| {
            let (embeddings, documents) = (Arc::clone(&embeddings), Arc::clone(&documents));
            tokio::spawn(async move {
                let texts = ["erase the invoice".to_owned(), "paint".to_owned()];
                let asked = embeddings.ask(None, &documents, &texts).await.unwrap();
                (asked.space.index.documents().len(), asked.vectors.len())
            })
        })
        .collect();
    embedder.release();
    for caller in callers {
        assert_eq!(caller.await.unwrap(), (40, 2));
    }
    assert_eq!(embedder.documents(), question_texts(&documents));
    assert_eq!(embedder.queries_but_phrases(), ["erase the invoice", "paint"]);
    let space = embeddings.space(&documents).await.unwrap();
    assert_eq!(best(&embeddings, &space, "tool number 7").await, 7);
    let [hit, built, failed] = embeddings.counts();
    assert!(hit.1 > 40 && built.1 >= 42 && failed.1 == 0, "{:?}", embeddings.counts());
}

#[tokio::test]
async fn what_will_be_asked_is_embedded_ahead_once_and_only_where_nobody_waits() {
    let embedder = Counting::new();
    let embeddings = Embeddings::over(embedder.clone(), None, &settings(), memory());
    embedder.busy(true);
    embeddings.foresee("Shall I go on?");
    embedder.busy(false);
    embedder.hold();
    for _ in 0..3 {
        embeddings.foresee("Archive all three?");
    }
    embedder.called().await;
    embedder.release();
    let texts = ["Archive all three?".to_owned()];
    let model = embeddings.space(&documents(2)).await.unwrap().model;
    assert_eq!(embeddings.queries(&model, &texts).await.unwrap().len(), 1);
    embeddings.foresee(&texts[0]);
    embeddings.shutdown().await;
    assert_eq!(embedder.queries_but_phrases(), texts);
}

#[tokio::test]
async fn the_build_goes_on_when_its_caller_stops_waiting() {
    let embedder = Counting::new();
    let embeddings = Embeddings::over(embedder.clone(), None, &settings(), memory());
    let documents = documents(5);
    embedder.hold();
    let given_up = tokio::time::timeout(Duration::from_millis(5), embeddings.space(&documents)).await;
    assert!(given_up.is_err());
    assert!(embeddings.ready_space(&documents).is_none());
    embedder.release();
    let give_up = Instant::now() + PATIENT;
    while embeddings.ready_space(&documents).is_none() {
        assert!(Instant::now() < give_up, "the build did not go on");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn one_edited_description_embeds_one_tool_and_a_restart_none() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings { cache_dir: Some(folder.path().join("cache")), ..settings() };
    let first = Counting::new();
    let embeddings = Embeddings::over(first.clone(), None, &settings, memory());
    let mut edited = documents(20);
    embeddings.space(&edited).await.unwrap();
    first.forget();
    let tool = &mut Arc::make_mut(&mut edited)[3];
    tool.description = "Paints a fence.".to_owned();
    let expected = packlight::retrieval::document::texts(tool);
    embeddings.space(&edited).await.unwrap();
    let embedded = first.documents();
    assert!(embedded.iter().all(|text| expected.contains(text)) && !embedded.is_empty(), "{embedded:?}");
    embeddings.shutdown().await;

    // A restart, with the roster in another order.
    let second = Counting::new();
    let embeddings = Embeddings::over(second.clone(), None, &settings, memory());
    Arc::make_mut(&mut edited).reverse();
    let space = embeddings.space(&edited).await.unwrap();
    assert_eq!(second.calls(), 0);
    assert_eq!(best(&embeddings, &space, "tool number 7").await, 12);

    // Another model does not take them for its own.
    let third = Counting::named("other");
    Embeddings::over(third.clone(), None, &settings, memory()).space(&edited).await.unwrap();
    assert!(third.calls() > 0);
}

#[tokio::test]
async fn damage_on_disk_costs_only_what_it_hit() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings { cache_dir: Some(folder.path().to_owned()), ..settings() };
    let documents = documents(20);
    Embeddings::over(Counting::new(), None, &settings, memory()).space(&documents).await.unwrap();
    let file = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
    let mut bytes = std::fs::read(&file).unwrap();
    // The last record torn off, one byte of an earlier one flipped, rubbish at the end.
    let middle = bytes.len() - 3000;
    bytes[middle] ^= 1;
    bytes.truncate(bytes.len() - 9);
    bytes.extend([0x50; 1000]);
    std::fs::write(&file, bytes).unwrap();
    let again = Counting::new();
    let embeddings = Embeddings::over(again.clone(), None, &settings, memory());
    let space = embeddings.space(&documents).await.unwrap();
    assert!((1..=6).contains(&again.documents().len()), "{:?}", again.documents());
    assert_eq!(best(&embeddings, &space, "tool number 19").await, 19);
    // And what was made anew behind the rubbish is found.
    let last = Counting::new();
    Embeddings::over(last.clone(), None, &settings, memory()).space(&documents).await.unwrap();
    assert_eq!(last.calls(), 0);
}

#[tokio::test]
async fn a_cache_that_cannot_be_written_is_no_obstacle() {
    let folder = tempfile::tempdir().unwrap();
    let blocked = folder.path().join("file");
    std::fs::write(&blocked, "").unwrap();
    let settings = Settings { cache_dir: Some(blocked.join("below")), ..settings() };
    Embeddings::over(Counting::new(), None, &settings, memory()).space(&documents(3)).await.unwrap();
}

#[tokio::test]
async fn a_failed_build_is_answered_at_once_until_it_is_tried_again() {
    let embedder = Counting::new();
    let settings = Settings { retry: Duration::from_millis(300), ..settings() };
    let embeddings = Embeddings::over(embedder.clone(), None, &settings, memory());
    let documents = documents(5);
    embedder.fail(Some(EmbedError::Failed("it answered 500".to_owned())));
    let begun = Instant::now();
    let error = embeddings.space(&documents).await.unwrap_err();
    assert_eq!(error, EmbedError::Failed("it answered 500".to_owned()));
    let calls = embedder.calls();
    for _ in 0..10 {
        assert_eq!(embeddings.space(&documents).await.unwrap_err(), error);
    }
    // On a machine that slept through the rest, the second attempt is in order.
    assert!(embedder.calls() == calls || begun.elapsed() > settings.retry);
    embedder.fail(None);
    let give_up = Instant::now() + PATIENT;
    while embeddings.space(&documents).await.is_err() {
        assert!(Instant::now() < give_up, "never tried again");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(embeddings.counts()[2].1 > 0);
}

#[tokio::test]
async fn a_failure_keeps_the_chunks_that_were_done() {
    let embedder = Counting::new();
    let settings = Settings { retry: Duration::ZERO, ..settings() };
    let embeddings = Embeddings::over(embedder.clone(), None, &settings, memory());
    let documents = documents(70);
    embeddings.space(&embedders::documents(1)).await.unwrap();
    embedder.forget();
    embedder.fail_after(1);
    embeddings.space(&documents).await.unwrap_err();
    embedder.fail(None);
    embedder.forget();
    embeddings.space(&documents).await.unwrap();
    let (made, all) = (embedder.documents().len(), question_texts(&documents).len());
    assert!(made * 3 < all * 2, "{made} of {all}");
}

#[tokio::test]
async fn too_many_rosters_at_once_are_refused() {
    let embedder = Counting::new();
    let embeddings = Embeddings::over(embedder.clone(), None, &settings(), memory());
    embedder.hold();
    let mut refused = 0;
    for n in 1..=40 {
        let waited = tokio::time::timeout(Duration::from_millis(1), embeddings.space(&documents(n))).await;
        refused += usize::from(matches!(waited, Ok(Err(EmbedError::QueueFull))));
    }
    assert_eq!(refused, 8);
    embedder.release();
    let asked = embeddings.space(&documents(1)).await;
    assert!(asked.is_ok(), "{:?}", asked.err());
}

#[tokio::test]
async fn nonsense_of_an_embedder_never_becomes_a_space() {
    for (nonsense, said) in [
        (vec![], "0 vectors"),
        (vec![vec![f32::NAN; 64]], "not finite"),
        (vec![vec![0.0; 64]], "all zero"),
        (vec![vec![1.0; 63]], "63 numbers instead of 64"),
    ] {
        let embedder = Counting::new();
        embedder.answer(nonsense);
        let embeddings = Embeddings::over(embedder.clone(), None, &settings(), memory());
        let error = embeddings.space(&documents(1)).await.unwrap_err();
        assert!(matches!(&error, EmbedError::Nonsense(_)), "{error}");
        let error = embeddings.queries("counting:64", &["x".to_owned()]).await.unwrap_err();
        assert!(error.to_string().contains(said), "{error}");
    }
}

#[tokio::test]
async fn no_model_is_said_and_fails_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings { model_path: Some(folder.path().join("none")), ..settings() };
    let embeddings = Embeddings::start(settings, memory());
    let give_up = Instant::now() + PATIENT;
    while embeddings.readiness() == Readiness::Loading {
        assert!(Instant::now() < give_up, "still loading");
        tokio::task::yield_now().await;
    }
    // A machine that has the model in `models/` finds it there.
    if embeddings.readiness() == Readiness::Absent {
        assert_eq!(embeddings.space(&documents(3)).await.unwrap_err(), EmbedError::Absent);
    }
}

#[tokio::test]
async fn shutdown_ends_a_build_that_would_never_end() {
    let embedder = Counting::new();
    let embeddings = Embeddings::over(embedder.clone(), None, &settings(), memory());
    embedder.hold();
    let waiting = tokio::spawn({
        let embeddings = Arc::clone(&embeddings);
        async move { embeddings.space(&documents(3)).await }
    });
    embedder.called().await;
    embeddings.shutdown().await;
    assert!(matches!(waiting.await.unwrap(), Err(EmbedError::Failed(_))));
}

#[tokio::test]
async fn a_slow_or_broken_embedder_is_backed_by_the_other() {
    let (slow, fast) = (Counting::new(), Counting::named("builtin"));
    let settings = Settings { deadline: Duration::from_millis(40), ..settings() };
    let embeddings = Embeddings::over(slow.clone(), Some(fast.clone()), &settings, memory());
    let documents = documents(5);
    slow.hold();
    let asked = embeddings.ask(None, &documents, &["tool number 4".to_owned()]).await.unwrap();
    assert_eq!(&*asked.space.model, "builtin:64");
    // The rest of the turn stays with it, whatever the other does meanwhile.
    slow.release();
    let asked = embeddings.ask(Some("builtin:64"), &documents, &["more".to_owned()]).await.unwrap();
    assert_eq!(&*asked.space.model, "builtin:64");
    let give_up = Instant::now() + PATIENT;
    while &*embeddings.space(&documents).await.unwrap().model != "counting:64" {
        assert!(Instant::now() < give_up, "never came back");
    }

    let broken = Counting::new();
    broken.fail(Some(EmbedError::Failed("it answered 500".to_owned())));
    let embeddings = Embeddings::over(broken.clone(), Some(fast.clone()), &settings, memory());
    assert_eq!(&*embeddings.space(&documents).await.unwrap().model, "builtin:64");
    // Its space is at hand but its query fails: both come from the fallback.
    broken.fail(None);
    let fresh =
        Embeddings::over(broken.clone(), Some(fast.clone()), &Settings { deadline: PATIENT, ..settings }, memory());
    assert_eq!(&*fresh.space(&documents).await.unwrap().model, "counting:64");
    broken.fail(Some(EmbedError::Timeout));
    let asked = fresh.ask(None, &documents, &["unheard of".to_owned()]).await.unwrap();
    assert_eq!(&*asked.space.model, "builtin:64");
    // With both gone, the configured one's reason is told.
    fast.fail(Some(EmbedError::QueueFull));
    assert_eq!(fresh.ask(None, &documents, &["new".to_owned()]).await.unwrap_err(), EmbedError::Timeout);
}
