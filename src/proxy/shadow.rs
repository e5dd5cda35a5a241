//! Shadow: what would have been bound is chosen beside the request, which is on its way already. NOT what follows from
//! it (`outcome`), NOT the choice itself (`choose`).

use std::sync::Arc;

use tokio::sync::oneshot;

use super::app::App;
use super::choose::{Chosen, Request};
use super::recall::Remembered;
use super::route::Route;
use super::sent::Sent;
use crate::turn::bypass::Bypass;
use crate::turn::policy::{Asked, Binding};
use crate::turn::roster::Roster;
use crate::turn::transcript::Transcript;

/// A request that is watched: all that choosing needs.
pub struct Shadow {
    pub sent: Sent,
    pub roster: Arc<Roster>,
    pub transcript: Transcript,
    pub asked: Asked,
    pub binding: Binding,
}

/// A choice that is being made.
pub struct Choosing(oneshot::Receiver<Result<Chosen, Bypass>>);

impl Shadow {
    /// Begins to choose, under the deadline that a narrowed request would have: what would have gone in full goes in full
    /// here, too. Nobody waits for it but the record.
    pub fn begin(self, app: &Arc<App>, route: &Arc<Route>) -> Choosing {
        let (done, chosen) = oneshot::channel();
        let (own, route) = (app.clone(), route.clone());
        app.shutdown.spawn(async move {
            let chosen = tokio::time::timeout(route.deadline, self.chosen(&own, &route)).await;
            // The request is over and nobody asks: the process ends.
            let _ = done.send(chosen.unwrap_or(Err(Bypass::Deadline)));
        });
        Choosing(chosen)
    }

    async fn chosen(self, app: &App, route: &Route) -> Result<Chosen, Bypass> {
        let view = self.sent.view().map_err(Bypass::Unreadable)?;
        // Nothing was ever hidden from this agent, so nothing is remembered.
        let remembered = Remembered::default();
        let Self { binding, roster, transcript, asked, .. } = &self;
        let request = Request { view: &view, transcript, asked };
        app.chooser.choose(route, *binding, roster.clone(), &request, &remembered).await
    }
}

impl Choosing {
    /// What was chosen, if that is known by now.
    pub fn known(&mut self) -> Option<Result<Chosen, Bypass>> {
        self.0.try_recv().ok()
    }

    /// What was chosen, at the deadline at the latest.
    pub async fn done(self) -> Result<Chosen, Bypass> {
        self.0.await.unwrap_or(Err(Bypass::Deadline))
    }
}
