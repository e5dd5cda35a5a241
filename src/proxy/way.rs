//! How a conversation is sent: narrowed with which binding, or in full where narrowing would cost more. It keeps what it
//! began with. NOT the formula (`cost::policy`), NOT what is known of traffic (`traffic.rs`), NOT who takes which binding
//! (`binding.rs`).

use super::app::App;
use super::asked;
use super::binding::Request;
use crate::config::narrow::Binding as Configured;
use crate::cost::policy::{self, Able, EXPLORED, Policy, Traffic, UNKNOWN_RATIO};
use crate::turn::policy::{Binding, Way};

/// The way of a request. `kept`: that of the conversation so far, where it is remembered. `conversation`: its key.
pub fn way(app: &App, request: &Request<'_>, conversation: &str, kept: Option<Way>) -> Way {
    let able = app.bindings.able(request);
    match request.route.binding {
        Configured::Append => Way::Narrowed(within(Binding::Append, able)),
        Configured::Dispatch => Way::Narrowed(within(Binding::Dispatch, able)),
        Configured::Replace => Way::Narrowed(Binding::Replace),
        // A block that changes its ways in the middle of a conversation is a cache lost.
        Configured::Auto => match kept {
            Some(Way::Full(binding)) if request.cut => Way::Narrowed(within(binding, able)),
            Some(kept) => kept.with(within(kept.binding(), able)),
            None => cheapest(app, request, able, asked::is_explored(conversation, EXPLORED)),
        },
    }
}

/// What costs least for a conversation of this model with this roster.
fn cheapest(app: &App, request: &Request<'_>, able: Able, explored: bool) -> Way {
    let price = app.prices.find(request.model).map_or(UNKNOWN_RATIO, |price| price.ratio());
    let (traffic, policy) = match app.expected(&request.route.upstream.name, request.model, price) {
        Some(watched) => {
            let traffic = sized(watched, request);
            (traffic, policy::choose(&traffic, able))
        }
        None => return Way::Narrowed(binding(policy::guess(able))),
    };
    match policy {
        Policy::Full if request.cut => Way::Narrowed(binding(policy::narrowing(&traffic, able))),
        Policy::Full if explored => Way::Explored(binding(policy::narrowing(&traffic, able))),
        Policy::Full => Way::Full(binding(policy::narrowing(&traffic, able))),
        narrowing => Way::Narrowed(binding(narrowing)),
    }
}

/// The same traffic with the sizes of this request's tools.
fn sized(traffic: Traffic, request: &Request<'_>) -> Traffic {
    let (roster, policy) = (request.roster, &request.route.policy);
    let sizes = roster.sizes();
    let all = sizes.all_tokens() as f64;
    let core: u64 = (0..roster.len()).filter(|tool| roster.always(*tool)).map(|tool| sizes.tokens(tool)).sum();
    let each = (all - core as f64) / roster.documents().len().max(1) as f64;
    let find_tools = if policy.max_discovery_legs > 0 { sizes.find_tools().1 } else { 0 };
    let core = (core + find_tools) as f64;
    Traffic {
        roster: all,
        core,
        bound: core + each * policy.max_retrieved_tools.usual() as f64,
        found: each * policy.max_discovered_tools as f64,
        ..traffic
    }
}

fn within(binding: Binding, able: Able) -> Binding {
    match binding {
        Binding::Append if able.append => Binding::Append,
        Binding::Dispatch if able.dispatch => Binding::Dispatch,
        Binding::Append | Binding::Dispatch | Binding::Replace => Binding::Replace,
    }
}

fn binding(policy: Policy) -> Binding {
    match policy {
        Policy::Append => Binding::Append,
        Policy::Dispatch => Binding::Dispatch,
        _ => Binding::Replace,
    }
}
