//! The fit of a head: the matrix under which the tools that messages needed stand out most. NOT where messages come
//! from, NOT whether the result is any good.
//!
//! ```text
//! loss = sum_i w_i * cross-entropy(uniform over the expected tools, softmax(SHARPNESS * q'_i . V)) + PENALTY * |A|^2
//! w    = a set weighs the root of its distinct tools; in it each tool the same; of it each message the same
//! ```
//!
//! Convex, so there is one answer and no seed. Lexical evidence takes no part: with it the fit is no better. Tools that
//! are in a roster only to distract teach "never the answer" to other rosters that hold them: leave them out.

use crate::embed::builtin::linear::{Layout, Start, multiply};

/// What products are multiplied with before they compete.
const SHARPNESS: f32 = 30.0;
/// Below .015 the top 5 suffer on messages that were not learnt from.
const PENALTY: f32 = 0.03;
/// Most fits are at the bottom after eight to ten.
const STEPS: usize = 40;
/// What a fit to a little more of the same may take from where the last one ended: it is the same bowl, a little moved.
const STEPS_ON: usize = 15;
/// Messages at a time: their scores stay in the cache.
const BLOCK: usize = 512;

/// Messages with what they needed, and the roster they were asked of.
#[derive(Debug, Clone, Default)]
pub struct Lesson {
    /// Messages x dimensions, row-major.
    pub queries: Vec<f32>,
    /// The documents each message needed; none empty.
    pub needed: Vec<Vec<usize>>,
    /// Documents x dimensions, row-major.
    pub tools: Vec<f32>,
}

/// The matrix, dimensions x dimensions, row-major. `mean`: what messages differ from. `from`: the matrix of a fit to most
/// of the same. `told`: called after each of [`steps`] at most.
pub fn fit(lessons: &[Lesson], mean: &[f32], from: Option<&[f32]>, told: &mut dyn FnMut(usize)) -> Vec<f32> {
    let dimensions = mean.len();
    let groups: Vec<Group> = lessons.iter().map(|lesson| Group::of(lesson, mean)).collect();
    let shares: Vec<f32> = groups.iter().map(|group| (group.distinct as f32).sqrt()).collect();
    let all: f32 = shares.iter().sum::<f32>().max(f32::MIN_POSITIVE);
    let mut loss = |matrix: &[f32], gradient: &mut [f32]| {
        for (gradient, number) in gradient.iter_mut().zip(matrix) {
            *gradient = 2.0 * PENALTY * number;
        }
        let penalty: f64 = matrix.iter().map(|number| f64::from(number * number)).sum();
        let losses = groups.iter().zip(&shares).map(|(group, share)| group.loss(matrix, share / all, gradient));
        f64::from(PENALTY) * penalty + losses.sum::<f64>()
    };
    let start = from.map_or_else(|| vec![0.0; dimensions * dimensions], <[f32]>::to_vec);
    super::minimise::minimise(start, steps(from.is_some()), &mut loss, told)
}

/// How often a fit tells of itself, at most. `on`: it goes on from another.
pub fn steps(on: bool) -> usize {
    if on { STEPS_ON } else { STEPS }
}

/// A lesson made ready: messages as distances from the mean, each with its weight.
struct Group<'a> {
    lesson: &'a Lesson,
    dimensions: usize,
    tools: usize,
    /// Messages x dimensions.
    centred: Vec<f32>,
    /// What the mean alone gives each tool.
    ground: Vec<f32>,
    /// Of each message; they sum up to 1.
    weights: Vec<f32>,
    /// Tools that any message needs.
    distinct: usize,
}

impl<'a> Group<'a> {
    fn of(lesson: &'a Lesson, mean: &[f32]) -> Self {
        let dimensions = mean.len();
        let rows = lesson.tools.chunks_exact(dimensions.max(1));
        let tools = rows.len();
        let ground = rows.map(|tool| SHARPNESS * crate::retrieval::matrix::product(tool, mean)).collect();
        let centred = lesson.queries.iter().zip(mean.iter().cycle()).map(|(number, mean)| number - mean).collect();
        let mut counts = vec![0f32; tools];
        for tool in lesson.needed.iter().flatten() {
            if let Some(count) = counts.get_mut(*tool) {
                *count += 1.0;
            }
        }
        let weight = |needed: &Vec<usize>| {
            let shares = needed.iter().filter_map(|tool| counts.get(*tool)).map(|count| 1.0 / count.max(1.0));
            shares.sum::<f32>() / needed.len().max(1) as f32
        };
        let mut weights: Vec<f32> = lesson.needed.iter().map(weight).collect();
        let all = weights.iter().sum::<f32>().max(f32::MIN_POSITIVE);
        weights.iter_mut().for_each(|weight| *weight /= all);
        let distinct = counts.iter().filter(|count| **count > 0.0).count();
        Self { lesson, dimensions, tools, centred, ground, weights, distinct }
    }

    /// Adds to the gradient, both times `share`.
    fn loss(&self, matrix: &[f32], share: f32, gradient: &mut [f32]) -> f64 {
        let (d, t) = (self.dimensions, self.tools);
        if self.weights.is_empty() || t == 0 || d == 0 {
            return 0.0;
        }
        let square = Layout::rows_of(d, d, d);
        let vectors = Layout::rows_of(t, d, d);
        let by_tool = Layout::rows_of(d, t, t);
        // (1 + A) V', so that one product of the messages gives what q' has of every tool.
        let mut seen = vec![0.0; d * t];
        for (tool, vector) in self.lesson.tools.chunks_exact(d).enumerate() {
            for (number, seen) in vector.iter().zip(seen.iter_mut().skip(tool).step_by(t)) {
                *seen = *number;
            }
        }
        let tools = (self.lesson.tools.as_slice(), vectors.transposed());
        multiply((&mut seen, by_tool), Start::Add, 1.0, (matrix, square), tools);
        let mut pulls = vec![0.0; d * t];
        let mut loss = 0.0;
        let messages =
            self.centred.chunks(BLOCK * d).zip(self.weights.chunks(BLOCK)).zip(self.lesson.needed.chunks(BLOCK));
        let mut scores = vec![0.0; BLOCK.min(self.weights.len()) * t];
        for ((centred, weights), needed) in messages {
            let count = weights.len();
            let (rows, square) = (Layout::rows_of(count, d, d), Layout::rows_of(count, t, t));
            let Some(scores) = scores.get_mut(..count * t) else { continue };
            multiply((scores, square), Start::Replace, SHARPNESS, (centred, rows), (&seen, by_tool));
            for ((scores, weight), needed) in scores.chunks_exact_mut(t).zip(weights).zip(needed) {
                loss += f64::from(self.compete(scores, needed, weight * share));
            }
            multiply((&mut pulls, by_tool), Start::Add, SHARPNESS, (centred, rows.transposed()), (scores, square));
        }
        multiply((gradient, square), Start::Add, 1.0, (&pulls, by_tool), (self.lesson.tools.as_slice(), vectors));
        loss
    }

    /// Scores of one message become their gradient.
    fn compete(&self, scores: &mut [f32], needed: &[usize], weight: f32) -> f32 {
        for (score, ground) in scores.iter_mut().zip(&self.ground) {
            *score += ground;
        }
        let most = folded(scores, f32::NEG_INFINITY, f32::max);
        let wanted: f32 = needed.iter().filter_map(|tool| scores.get(*tool)).map(|score| score - most).sum();
        for score in scores.iter_mut() {
            *score = (*score - most).exp();
        }
        let sum = folded(scores, 0.0, |sum, score| sum + score);
        let scale = weight / sum;
        scores.iter_mut().for_each(|score| *score *= scale);
        let each = 1.0 / needed.len().max(1) as f32;
        for tool in needed {
            if let Some(score) = scores.get_mut(*tool) {
                *score -= weight * each;
            }
        }
        weight * (sum.ln() - wanted * each)
    }
}

/// Numbers that do not wait for each other.
const LANES: usize = 16;

/// A fold in any order.
fn folded(numbers: &[f32], start: f32, with: impl Fn(f32, f32) -> f32) -> f32 {
    let chunks = numbers.chunks_exact(LANES);
    let rest = chunks.remainder().iter().fold(start, |all, number| with(all, *number));
    let mut lanes = [start; LANES];
    for chunk in chunks {
        for (lane, number) in lanes.iter_mut().zip(chunk) {
            *lane = with(*lane, *number);
        }
    }
    lanes.into_iter().fold(rest, with)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::figures::Random;

    fn noise(random: &mut Random) -> f32 {
        (random.drawn() >> 40) as f32 / (1 << 23) as f32 - 1.0
    }

    fn lesson(messages: usize) -> (Lesson, Vec<f32>) {
        let (d, t) = (8, 5);
        let mut random = Random(7);
        let tools = (0..t * d).map(|_| noise(&mut random)).collect();
        let queries = (0..messages * d).map(|_| noise(&mut random) * 0.3).collect();
        let needed = (0..messages).map(|i| if i % 7 == 0 { vec![i % t, (i + 1) % t] } else { vec![i % t] }).collect();
        (Lesson { queries, needed, tools }, vec![0.05; d])
    }

    #[test]
    fn the_gradient_is_the_slope() {
        let (lesson, mean) = lesson(23);
        let group = Group::of(&lesson, &mean);
        assert!((group.weights.iter().sum::<f32>() - 1.0).abs() < 1e-5);
        let mut random = Random(3);
        let at: Vec<f32> = (0..64).map(|_| noise(&mut random) * 0.05).collect();
        let mut gradient = vec![0.0; 64];
        group.loss(&at, 1.0, &mut gradient);
        for place in [0, 9, 33, 63] {
            let moved = |by: f32| {
                let mut there = at.clone();
                there[place] += by;
                group.loss(&there, 1.0, &mut vec![0.0; 64])
            };
            let slope = (moved(1e-2) - moved(-1e-2)) / 2e-2;
            assert!(
                (slope - f64::from(gradient[place])).abs() < 2e-2 * slope.abs().max(0.1),
                "{slope} {}",
                gradient[place]
            );
        }
    }

    #[test]
    fn messages_are_turned_to_what_they_needed() {
        let (d, t, messages) = (8, 4, 200);
        let mut random = Random(11);
        // Message i lies near axis i % 4, its tool on axis 4 + i % 4: nothing but a turn connects them.
        let axis = |at: usize, random: &mut Random| -> Vec<f32> {
            (0..d).map(|i| f32::from(u8::from(i == at)) + 0.1 * noise(random)).collect()
        };
        let lesson = Lesson {
            queries: (0..messages).flat_map(|i| axis(i % t, &mut random)).collect(),
            needed: (0..messages).map(|i| vec![i % t]).collect(),
            tools: (0..t).flat_map(|i| axis(4 + i, &mut random)).collect(),
        };
        let mean = vec![0.125; d];
        let matrix = fit(std::slice::from_ref(&lesson), &mean, None, &mut |_| {});
        let again = fit(std::slice::from_ref(&lesson), &mean, Some(&matrix), &mut |_| {});
        assert!(again.iter().zip(&matrix).all(|(again, once)| (again - once).abs() < 0.05), "it was at the bottom");
        let head = crate::retrieval::head::Head::new("m", mean, &matrix).expect("a head");
        let best = |query: &[f32]| {
            let scores = lesson.tools.chunks(d).map(|tool| crate::retrieval::matrix::product(tool, query));
            scores.enumerate().max_by(|a, b| a.1.total_cmp(&b.1)).map(|(tool, _)| tool)
        };
        let right = |turned: bool| {
            let queries = lesson.queries.chunks(d).zip(&lesson.needed);
            let hit = |(query, needed): (&[f32], &Vec<usize>)| {
                let query = if turned { head.apply(query) } else { query.to_vec() };
                best(&query) == needed.first().copied()
            };
            queries.map(hit).filter(|hit| *hit).count()
        };
        assert!(right(true) > messages * 95 / 100 && right(false) < messages / 2, "{} {}", right(true), right(false));
    }
}
