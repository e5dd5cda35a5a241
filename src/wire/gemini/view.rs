//! Reads a request.
use crate::wire::WireError;
use crate::wire::view::ChatView;

/// Reads a request.
pub fn view<'a>(_body: &'a str, _path: &'a str) -> Result<ChatView<'a>, WireError> {
    todo!()
}
