//! Makes the request that is sent instead.
use crate::wire::request::Rewrite;
use crate::wire::view::ChatView;

/// Makes the request that is sent instead.
pub fn rewrite(_body: &str, _view: &ChatView<'_>, _rewrite: &Rewrite<'_>) -> String {
    todo!()
}
