//! However the network cuts a stream, the reply is the same.

use crate::*;
use proptest::prelude::*;

fn streams() -> Vec<Vec<String>> {
    let odd = ": WAITING\n\nevent: ping\ndata: {}\n\ndata: 你好 not json\n\n";
    let mixed = [
        delta("a", r#"{"content":"你\ud83d\ude00"}"#),
        delta("a", &call(0, "find_tools:0", "find_tools")),
        delta("a", &arguments(0, "{\"query\":\"بريد\"}")),
        delta("a", &call(1, "send:1", "send")),
        delta("a", &arguments(1, "{\"to\":\"你\"}")),
        finish("a", "tool_calls"),
        DONE.to_owned(),
    ]
    .concat();
    let base = [
        vec![format!("{odd}{}", call_leg())],
        vec![search_leg(), format!("{odd}{}", call_leg())],
        vec![search_leg(), search_leg(), call_leg()],
        vec![mixed],
        vec![search_leg(), call_leg().trim_end().to_owned()],
        vec![search_leg(), call_leg()[..call_leg().len() / 2].to_owned()],
    ];
    let ends = ["\n", "\r\n", "\r"];
    ends.iter()
        .flat_map(|end| base.iter().map(move |legs| legs.iter().map(|leg| leg.replace('\n', end)).collect()))
        .collect()
}

proptest! {
    #[test]
    fn the_reply_does_not_depend_on_how_it_is_cut(
        which in 0usize..18,
        hold_text in any::<bool>(),
        cuts in proptest::collection::vec(1usize..60, 1..20),
    ) {
        let legs = &streams()[which];
        let cut = |leg: &String| {
            let (mut rest, mut chunks, mut sizes) = (leg.as_bytes(), Vec::new(), cuts.iter().cycle());
            while !rest.is_empty() {
                let (chunk, next) = rest.split_at(rest.len().min(*sizes.next().expect("cycle")));
                chunks.push(chunk.to_vec());
                rest = next;
            }
            chunks
        };
        let whole: Vec<_> = legs.iter().map(|leg| vec![leg.as_bytes().to_vec()]).collect();
        let expected = assemble_chunks(Framing::Sse, &whole, hold_text);
        if which % 6 == 0 {
            prop_assert_eq!(&expected.out, &legs[0]);
        }
        prop_assert!(!expected.out.contains("find_tools"));
        prop_assert_eq!(assemble_chunks(Framing::Sse, &legs.iter().map(cut).collect::<Vec<_>>(), hold_text), expected);
    }
}
