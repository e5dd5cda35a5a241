//! Embedders behind HTTP, over servers that answer as they should and as they should not.

mod embedders;

use std::time::Duration;

use embedders::{PATIENT, Server, best, documents, memory, near, settings, vector_of};
use packlight::embed::{ApiKey, Embeddings, Provider, Settings};
use packlight::retrieval::embedder::EmbedError;
use serde_json::{Value, json};

fn remote(provider: Provider, server: &Server) -> Settings {
    Settings {
        provider,
        model: "m".to_owned(),
        url: server.url(),
        api_key: ApiKey::new("hunter2".to_owned()),
        query_prefix: "q: ".to_owned(),
        document_prefix: "d: ".to_owned(),
        timeout: PATIENT,
        // a file that is no model: a real one in `models/` would stand in for what these tests break
        model_path: Some(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml").into()),
        ..settings()
    }
}

#[tokio::test]
async fn gemini_is_asked_in_batches_of_a_hundred_with_its_task_types() {
    let server = Server::start(embedders::gemini).await;
    let embeddings = Embeddings::start(remote(Provider::Gemini, &server), memory());
    let documents = documents(4);
    let space = embeddings.space(&documents).await.unwrap();
    assert_eq!(best(&embeddings, &space, "tool number 2").await, 2);
    let many: Vec<String> = (0..250).map(|n| format!("message {n}")).collect();
    server.forget();
    let vectors = embeddings.queries(&space.model, &many).await.unwrap();
    for (vector, text) in vectors.iter().zip(&many) {
        assert!(near(vector, &vector_of(text)), "{text}");
    }
    let asked = server.asked();
    let sizes: Vec<_> = asked.iter().map(|asked| asked.body["requests"].as_array().unwrap().len()).collect();
    assert_eq!(sizes, [100, 100, 50]);
    assert_eq!(asked[0].path, "/v1/models/m:batchEmbedContents");
    assert_eq!(asked[0].header("x-goog-api-key"), "hunter2");
    assert_eq!(
        asked[0].body["requests"][1],
        json!({"model": "models/m", "content": {"parts": [{"text": "message 1"}]}, "taskType": "RETRIEVAL_QUERY"})
    );
}

#[tokio::test]
async fn openai_has_prefixes_a_bearer_and_any_order() {
    let server = Server::start(|body| {
        let mut answer = embedders::openai(body);
        answer["data"].as_array_mut().unwrap().reverse();
        answer
    })
    .await;
    let embeddings = Embeddings::start(remote(Provider::OpenAi, &server), memory());
    let documents = documents(3);
    let space = embeddings.space(&documents).await.unwrap();
    let vectors = embeddings.queries(&space.model, &["a b".to_owned(), "c".to_owned()]).await.unwrap();
    assert!(near(&vectors[0], &vector_of("q: a b")) && near(&vectors[1], &vector_of("q: c")));
    let asked = server.asked();
    assert!(
        asked.iter().all(|asked| asked.path == "/v1/embeddings" && asked.header("authorization") == "Bearer hunter2")
    );
    let last = &asked.last().unwrap().body;
    assert_eq!(*last, json!({"model": "m", "input": ["q: a b", "q: c"], "encoding_format": "float"}));
    let tool = asked.iter().find(|asked| asked.body["input"][0].as_str().unwrap().starts_with("d: "));
    assert!(tool.is_some());
    assert!(space.model.starts_with("openai:m:") && space.model.ends_with(":64"), "{}", space.model);
}

#[tokio::test]
async fn without_a_key_no_authorization_is_sent() {
    let server = Server::start(embedders::openai).await;
    let settings = Settings { api_key: ApiKey::default(), ..remote(Provider::OpenAi, &server) };
    Embeddings::start(settings, memory()).space(&documents(1)).await.unwrap();
    assert!(server.asked().iter().all(|asked| asked.header("authorization").is_empty()));
}

#[tokio::test]
async fn errors_name_the_status_and_nothing_else() {
    let server = Server::start_raw(|body| (500, format!("hunter2 {body}"))).await;
    let embeddings = Embeddings::start(remote(Provider::OpenAi, &server), memory());
    let error = embeddings.space(&documents(1)).await.unwrap_err();
    assert_eq!(error, EmbedError::Failed("it answered 500".to_owned()));

    let gone = Settings { url: "http://127.0.0.1:1/v1".to_owned(), ..remote(Provider::Gemini, &server) };
    let error = Embeddings::start(gone, memory()).space(&documents(1)).await.unwrap_err();
    assert_eq!(error, EmbedError::Failed("127.0.0.1:1 cannot be reached".to_owned()));
}

#[tokio::test]
async fn wrong_answers_are_nonsense() {
    fn short(body: &Value) -> Value {
        let mut answer = embedders::openai(body);
        answer["data"].as_array_mut().unwrap().pop();
        answer
    }
    fn twice(body: &Value) -> Value {
        let mut answer = embedders::openai(body);
        for embedding in answer["data"].as_array_mut().unwrap() {
            embedding["index"] = json!(0);
        }
        answer
    }
    fn huge(body: &Value) -> Value {
        let mut answer = embedders::openai(body);
        answer["data"][0]["embedding"][0] = json!(1e300);
        answer
    }
    fn null(body: &Value) -> Value {
        let mut answer = embedders::openai(body);
        answer["data"][0]["embedding"][0] = Value::Null;
        answer
    }
    for wrong in [short, twice, huge, null] {
        let server = Server::start(wrong).await;
        let embeddings = Embeddings::start(remote(Provider::OpenAi, &server), memory());
        let error = embeddings.space(&documents(2)).await.unwrap_err();
        assert!(matches!(error, EmbedError::Nonsense(_)), "{error:?}");
    }
    let server = Server::start_raw(|_| (200, r#"{"data":[{"index":0,"embedding":[NaN]}]}"#.to_owned())).await;
    let error = Embeddings::start(remote(Provider::OpenAi, &server), memory()).space(&documents(2)).await.unwrap_err();
    assert!(matches!(error, EmbedError::Nonsense(_)), "{error:?}");
}

#[tokio::test]
async fn a_silent_server_is_a_timeout() {
    let server = Server::start(embedders::openai).await;
    server.hold();
    let settings = Settings { timeout: Duration::from_millis(30), ..remote(Provider::OpenAi, &server) };
    let error = Embeddings::start(settings, memory()).space(&documents(1)).await.unwrap_err();
    assert_eq!(error, EmbedError::Timeout);
}

#[tokio::test]
async fn a_restart_asks_a_remote_embedder_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(embedders::gemini).await;
    let settings = Settings { cache_dir: Some(folder.path().to_owned()), ..remote(Provider::Gemini, &server) };
    let documents = documents(4);
    Embeddings::start(settings.clone(), memory()).space(&documents).await.unwrap();
    server.forget();
    let embeddings = Embeddings::start(settings, memory());
    let space = embeddings.space(&documents).await.unwrap();
    assert_eq!(server.asked().len(), 0);
    assert_eq!(best(&embeddings, &space, "tool number 3").await, 3);
}

/// The server got another model under the old name: the vectors of the old one are not mixed with it.
#[tokio::test]
async fn a_server_that_changes_its_dimensions_is_learnt_anew() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(embedders::openai).await;
    let settings = Settings {
        cache_dir: Some(folder.path().to_owned()),
        retry: Duration::ZERO,
        ..remote(Provider::OpenAi, &server)
    };
    Embeddings::start(settings.clone(), memory()).space(&documents(4)).await.unwrap();
    let server = server.replaced(|body| {
        let mut answer = embedders::openai(body);
        for embedding in answer["data"].as_array_mut().unwrap() {
            embedding["embedding"].as_array_mut().unwrap().extend([json!(0.1), json!(0.2)]);
        }
        answer
    });
    let embeddings = Embeddings::start(settings, memory());
    // The old ones are complete for this roster; the first that must be made tells the difference.
    let error = embeddings.space(&documents(6)).await.unwrap_err();
    assert!(matches!(error, EmbedError::Nonsense(_)), "{error:?}");
    let space = embeddings.space(&documents(6)).await.unwrap();
    assert!(space.model.ends_with(":66"), "{}", space.model);
    drop(server);
}
