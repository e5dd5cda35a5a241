//! Golden files: what a request becomes, and what a client sees of a reply, whole
//! and readable side by side. The files of `tests/wire/openai` are the cases:
//!
//! * `x.json`: the body of a request, rewritten as [`openai::request`] says, and with its tools declared in messages
//!   as [`openai::declaring`] and [`openai::dispatching`] say;
//! * `x.sse`, `x.whole`: the legs of a reply, cut at lines `=== leg`.
//!
//! A new case is a new file; `INSTA_UPDATE=always` writes its snapshot.

mod openai {
    use std::path::{Path, PathBuf};

    use packlight::wire::dispatch::Dispatch;
    use packlight::wire::reply::Framing;
    use packlight::wire::request::{Answer, Declaration, Exchange, FindTools, Place, Restored, Rewrite, Slot};
    use packlight::wire::view::{Role, ToolKind};
    use packlight::wire::{Assembler, Format};

    #[test]
    fn requests() {
        each("json", "", request);
    }

    #[test]
    fn requests_that_declare_in_messages() {
        each("json", ".append", declaring);
    }

    #[test]
    fn requests_that_dispatch() {
        each("json", ".dispatch", dispatching);
    }

    #[test]
    fn streamed_replies() {
        each("sse", "", |text| reply(text, Framing::Sse));
    }

    #[test]
    fn replies_in_one_document() {
        each("whole", "", |text| reply(text, Framing::Whole));
    }

    /// Every second function and all fixed entries are bound, `find_tools` last; the first reply is given back a
    /// search, and another search stands at the end.
    fn request(body: &str) -> String {
        let view = Format::OpenAi.view(body.as_bytes(), "/v1/chat/completions").expect("view");
        let tools = view.tools.iter().enumerate();
        let bound = tools.filter(|(at, tool)| tool.kind == ToolKind::Fixed || at % 2 == 0);
        let block: Vec<Slot> = bound.map(|(at, _)| Slot::Roster(at)).chain([Slot::FindTools]).collect();
        let find_tools = FindTools { name: "find_tools".into(), description: "Finds \"tools\": list_notes".into() };
        let replied = view.messages.iter().position(|message| message.role == Role::Assistant);
        let restored: Vec<Restored> = replied
            .into_iter()
            .map(|at| Restored { run: at..at + 1, exchanges: vec![exchange("Let me look. ", "No such tool yet.")] })
            .collect();
        let rewrite = Rewrite {
            block: &block,
            find_tools: Some(&find_tools),
            restored: &restored,
            appended: &[exchange("", "")],
            max_tokens: Some(1024),
            ..Rewrite::default()
        };
        let written = Format::OpenAi.rewrite(body, &view, &rewrite);
        Format::OpenAi.view(written.as_bytes(), "/v1/chat/completions").expect("a request again");
        written
    }

    /// As [`request`] without its searches, and `call_tool` stands for every function that is not bound.
    fn dispatching(body: &str) -> String {
        let view = Format::OpenAi.view(body.as_bytes(), "/v1/chat/completions").expect("view");
        let tools = view.tools.iter().enumerate();
        let bound: Vec<usize> =
            tools.filter(|(at, tool)| tool.kind == ToolKind::Fixed || at % 2 == 1).map(|(at, _)| at).collect();
        let block: Vec<Slot> = bound.iter().map(|at| Slot::Roster(*at)).chain([Slot::FindTools]).collect();
        let find_tools = FindTools { name: "find_tools".into(), description: "Finds tools".into() };
        let names = |kept: &dyn Fn(usize) -> bool| {
            let functions =
                view.tools.iter().enumerate().filter(|(at, tool)| tool.kind == ToolKind::Function && kept(*at));
            functions.map(|(_, tool)| tool.name.to_string()).collect()
        };
        let dispatch = Dispatch {
            name: "call_tool".into(),
            description: "Calls \"them\"".into(),
            known: names(&|_| true),
            declared: names(&|at| bound.contains(&at)),
        };
        let rewrite =
            Rewrite { block: &block, find_tools: Some(&find_tools), dispatch: Some(&dispatch), ..Rewrite::default() };
        let written = Format::OpenAi.rewrite(body, &view, &rewrite);
        Format::OpenAi.view(written.as_bytes(), "/v1/chat/completions").expect("a request again");
        written
    }

    /// Fixed entries are the block, `find_tools` last. Functions are declared in turn behind the first message of the
    /// user's, behind the search in front of the first reply, in front of that reply, and behind the search at the end.
    fn declaring(body: &str) -> String {
        let view = Format::OpenAi.view(body.as_bytes(), "/v1/chat/completions").expect("view");
        let of = |kind| view.tools.iter().enumerate().filter(move |(_, t)| t.kind == kind).map(|(at, _)| at);
        let block: Vec<Slot> = of(ToolKind::Fixed).map(Slot::Roster).chain([Slot::FindTools]).collect();
        let at = |role| view.messages.iter().position(|message| message.role == role);
        let replied = at(Role::Assistant);
        let restored: Vec<Restored> = replied
            .into_iter()
            .map(|at| Restored { run: at..at + 1, exchanges: vec![exchange("Let me look. ", "No such tool yet.")] })
            .collect();
        let mut places = vec![Place::Behind(at(Role::User).expect("a user"))];
        places.extend(replied.map(|_| Place::Restored { reply: 0, exchange: 0 }));
        places.extend(replied.map(Place::Before));
        places.push(Place::Appended(0));
        let tools: Vec<usize> = of(ToolKind::Function).collect();
        let every = |nth: usize| tools.iter().copied().skip(nth).step_by(places.len()).collect::<Vec<_>>();
        let declared = places.iter().enumerate().map(|(nth, place)| Declaration { place: *place, tools: every(nth) });
        let declared: Vec<Declaration> = declared.filter(|declaration| !declaration.tools.is_empty()).collect();
        let find_tools = FindTools { name: "find_tools".into(), description: "Finds \"tools\"".into() };
        let rewrite = Rewrite {
            block: &block,
            find_tools: Some(&find_tools),
            declared: &declared,
            restored: &restored,
            appended: &[exchange("", "")],
            ..Rewrite::default()
        };
        let written = Format::OpenAi.rewrite(body, &view, &rewrite);
        Format::OpenAi.view(written.as_bytes(), "/v1/chat/completions").expect("a request again");
        written
    }

    fn exchange(text: &str, reasoning: &str) -> Exchange {
        Exchange {
            said: r#"{"role":"assistant","tool_calls":[{"id":"find_tools:0","type":"function","function":{"name":"find_tools","arguments":"{}"}}]}"#.into(),
            answers: vec![Answer { id: "find_tools:0".into(), name: "find_tools".into(), text: "list_notes: \"all\"".into() }],
            text: text.into(),
            reasoning: reasoning.into(),
            mixed: false,
            found: Vec::new(),
        }
    }

    fn reply(text: &str, framing: Framing) -> String {
        let legs: Vec<&str> = text.split("=== leg\n").collect();
        let mut assembler = Assembler::new(Format::OpenAi, framing, "find_tools", false);
        let (mut out, mut report) = (Vec::new(), String::new());
        for (number, leg) in legs.iter().enumerate() {
            assembler.feed(leg.as_bytes(), &mut out);
            let leg = assembler.end_leg();
            report.push_str(&format!("{leg:#?}\n"));
            if !leg.searches.is_empty() {
                let answers = leg.searches.iter().map(|search| Answer {
                    id: search.id.clone(),
                    name: "find_tools".into(),
                    text: "found".into(),
                });
                let exchange = assembler.exchange(answers.collect(), vec!["x".into()]);
                report.push_str(&format!("said: {}\n", exchange.said));
            }
            if number + 1 < legs.len() {
                assembler.next_leg();
            }
        }
        assembler.close(&mut out);
        let out = String::from_utf8(out).expect("UTF-8");
        assert!(!out.contains("find_tools"), "{out}");
        let (text, calls) = assembler.visible();
        format!("{out}\n--- visible: {text:?} {calls:?}\n--- legs\n{report}")
    }

    fn each(extension: &str, suffix: &str, run: impl Fn(&str) -> String) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wire/openai");
        let files = std::fs::read_dir(&folder).expect("the folder of cases");
        let mut cases: Vec<PathBuf> = files.map(|file| file.expect("a file").path()).collect();
        cases.retain(|path| path.extension().is_some_and(|own| own == extension));
        cases.sort();
        assert!(!cases.is_empty());
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path(&folder);
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        for path in cases {
            let name = path.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
            let text = std::fs::read_to_string(&path).expect("text");
            settings.bind(|| insta::assert_snapshot!(format!("{name}{suffix}"), run(&text)));
        }
    }
}
