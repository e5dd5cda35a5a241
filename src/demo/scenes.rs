//! What is played: who asks what, what the model then does, and what the agent's tools answer. Data only. NOT which
//! tools get bound: that is what the demo finds out.

/// One conversation: a user's message and what the model does about it.
#[derive(Debug)]
pub struct Scene {
    pub title: &'static str,
    /// What the user types.
    pub ask: &'static str,
    /// The calls the model makes, one after the other.
    pub steps: &'static [Step],
    /// The model's last words.
    pub farewell: &'static str,
}

/// One call of the model.
#[derive(Debug)]
pub struct Step {
    pub tool: &'static str,
    /// A JSON object.
    pub arguments: &'static str,
    /// What the agent's own tool answers.
    pub answer: &'static str,
    /// What the model asks `find_tools` for when `tool` is not declared.
    pub search: &'static str,
    /// How the tool is to get to the model.
    pub way: Way,
}

/// How a tool gets to the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Bound from the start, because of what the user said.
    Selected,
    /// Withheld at first: nothing the user said points at it. The model learns of the need from an answer.
    Discovered,
}

/// The system prompt of the agent.
pub const SYSTEM: &str = "You are the assistant inside a CRM. Use the tools to do what the user asks. Answer briefly, in \
                          the user's language.";

/// Makes the vectors, so that the scenes show what a running sidecar does.
pub const WARM_UP: &str = "what do we charge for the big espresso machine?";

pub const SCENES: [Scene; 3] = [
    Scene {
        title: "English",
        ask: "Jill's got the flu, Marco should pick up her stuff this week",
        steps: &[Step {
            tool: "reassign_task",
            arguments: r#"{"all_of_user_id":"usr_jill","to_user_id":"usr_marco","until":"2026-12-04"}"#,
            answer: r#"{"moved":6,"back_on":"2026-12-05"}"#,
            search: "hand a colleague's to-dos over to someone else",
            way: Way::Selected,
        }],
        farewell: "Six to-dos went from Jill to Marco; she gets them back on Saturday.",
    },
    Scene {
        title: "Arabic",
        ask: "القهوة كلها تزيد أربعة بالمية من أول يناير",
        steps: &[Step {
            tool: "update_product_price",
            arguments: r#"{"category":"coffee","change":{"kind":"percent","amount":4},"valid_from":"2027-01-01"}"#,
            answer: r#"{"changed":11}"#,
            search: "raise the price of a product group",
            way: Way::Selected,
        }],
        farewell: "تم، أسعار أحد عشر صنفا من القهوة ترتفع أربعة بالمئة من أول يناير.",
    },
    Scene {
        title: "A tool nobody asked for",
        ask: "Acme said yes!! Correct its record, the deal is closed won, then do what our playbook says",
        steps: &[
            Step {
                tool: "update_record",
                arguments: r#"{"object":"deal","record_id":"dea_acme","values":[{"field":"stage","value":"closed_won"}]}"#,
                answer: r#"{"ok":true,"playbook":"After a win: alert the owner on mobile whenever the customer opens a document."}"#,
                search: "move a deal to another stage",
                way: Way::Selected,
            },
            Step {
                tool: "set_notifications",
                arguments: r#"{"events":["quote_opened"],"enabled":true,"channel":"mobile","frequency":"at_once"}"#,
                answer: r#"{"quote_opened":{"mobile":"at_once"}}"#,
                search: "turn on mobile alerts for an event",
                way: Way::Discovered,
            },
        ],
        farewell: "Acme is closed won, and you get an alert on your phone when they open a document.",
    },
];

/// The scene that begins with this message.
pub fn of(ask: &str) -> Option<&'static Scene> {
    SCENES.iter().find(|scene| scene.ask == ask)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_is_a_call_of_a_tool_that_exists() {
        for step in SCENES.iter().flat_map(|scene| scene.steps) {
            assert!(super::super::ROSTER.contains(&format!("\"name\":\"{}\"", step.tool)), "{}", step.tool);
            for json in [step.arguments, step.answer] {
                assert!(serde_json::from_str::<serde_json::Value>(json).is_ok_and(|value| value.is_object()), "{json}");
            }
        }
    }

    #[test]
    fn one_scene_needs_a_search_and_both_languages_are_spoken() {
        let discovered = |scene: &&Scene| scene.steps.iter().any(|step| step.way == Way::Discovered);
        assert_eq!(SCENES.iter().filter(discovered).count(), 1);
        assert!(SCENES.iter().any(|scene| scene.ask.is_ascii()) && SCENES.iter().any(|scene| !scene.ask.is_ascii()));
    }
}
