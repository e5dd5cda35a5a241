//! A connection that has left HTTP (a websocket): bytes both ways until either side ends it. NOT reading them.

use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;

use super::shutdown::Shutdown;

/// Joins both sides in a task of its own, which shutdown waits for and cuts.
pub fn join(shutdown: &Shutdown, client: OnUpgrade, upstream: OnUpgrade) {
    let cut = shutdown.clone();
    shutdown.spawn(async move {
        let copy = async {
            let (client, upstream) = tokio::try_join!(client, upstream)?;
            let (mut client, mut upstream) = (TokioIo::new(client), TokioIo::new(upstream));
            let copied = tokio::io::copy_bidirectional(&mut client, &mut upstream).await;
            Ok::<_, hyper::Error>(copied)
        };
        tokio::select! {
            () = cut.cut() => {}
            ended = copy => match ended {
                Ok(Ok(_)) => {}
                Ok(Err(error)) => tracing::debug!(%error, "tunnel ended"),
                Err(error) => tracing::debug!(%error, "tunnel was not made"),
            },
        }
    });
}
