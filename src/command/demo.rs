//! `demo`: the scripted model of `packlight::demo`, a real sidecar in front of it, and the page. NOT what is played, NOT
//! what is judged.

use std::env;
use std::io::{self, IsTerminal};

use packlight::demo::page::{Page, Paint};
use packlight::demo::{self, DemoError, Ending, provider};

use super::failure::Failure;
use super::sidecar::Sidecar;
use super::{runtime, serve};

/// Plays it. A failure, and so exit code 1, unless all went as claimed.
pub(crate) fn demo() -> Result<(), Failure> {
    // Where the model and the vectors are kept may be set in the environment, as for `serve`.
    let environment = serve::load(None)?;
    runtime::run(async {
        let failed = |error: DemoError| Failure::Run(format!("demo: {error}"));
        let model = provider::start().await.map_err(|error| Failure::Run(format!("demo: no free port: {error}")))?;
        let mut config = demo::settings(model.addr).map_err(failed)?;
        config.embeddings.model_path.clone_from(&environment.embeddings.model_path);
        config.embeddings.cache_dir.clone_from(&environment.embeddings.cache_dir);
        let sidecar = Sidecar::start(&config).await?;
        let place = demo::Sidecar { data: sidecar.data, admin: sidecar.admin };
        let mut out = io::stdout();
        let held = demo::run(place, &model, &mut Page::new(&mut out, paint())).await;
        // Nobody is left who could want a stream to go on.
        sidecar.shutdown.begin();
        sidecar.shutdown.cut_now();
        sidecar.ended().await?;
        match held {
            Ok(Ending::AsClaimed) => Ok(()),
            Ok(Ending::NotAsClaimed) => Err(Failure::Run("demo: not as claimed, see above".to_owned())),
            Ok(Ending::NoModel) => Err(Failure::Run("demo: no embedding model: run `make model`".to_owned())),
            // A reader that has seen enough is no failure.
            Err(DemoError::Page(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            Err(error) => Err(failed(error)),
        }
    })
}

/// Colours only for a person: <https://no-color.org>.
fn paint() -> Paint {
    let is_unwanted = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if io::stdout().is_terminal() && !is_unwanted { Paint::Ansi } else { Paint::Plain }
}
