//! A series of each kind, made and registered. NOT which there are.

use prometheus::{GaugeVec, HistogramOpts, HistogramVec, IntCounterVec, Opts, Registry, core::Collector};

/// A total.
pub(super) fn counter(
    registry: &Registry,
    name: &str,
    help: &str,
    labels: &[&str],
) -> Result<IntCounterVec, prometheus::Error> {
    register(registry, IntCounterVec::new(Opts::new(name, help), labels)?)
}

/// A total that can fall, or a figure that is learnt.
pub(super) fn gauge(
    registry: &Registry,
    name: &str,
    help: &str,
    labels: &[&str],
) -> Result<GaugeVec, prometheus::Error> {
    register(registry, GaugeVec::new(Opts::new(name, help), labels)?)
}

pub(super) fn histogram(
    registry: &Registry,
    name: &str,
    help: &str,
    labels: &[&str],
    buckets: Vec<f64>,
) -> Result<HistogramVec, prometheus::Error> {
    register(registry, HistogramVec::new(HistogramOpts::new(name, help).buckets(buckets), labels)?)
}

pub(super) fn register<C: Collector + Clone + 'static>(registry: &Registry, series: C) -> Result<C, prometheus::Error> {
    registry.register(Box::new(series.clone()))?;
    Ok(series)
}
