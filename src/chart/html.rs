//! The page around figures, and the only way for a name into it. A page allows itself its own style and script by their
//! hashes and nothing else, so that even a hole in the escaping could load and run nothing. NOT what a page says.

use std::fmt::{self, Write};

use sha2::{Digest, Sha256};

/// Text from outside: what could be markup, or a control of a terminal, is none.
#[derive(Debug, Clone, Copy)]
pub struct Text<'a>(pub &'a str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                '`' => f.write_str("&#96;")?,
                '\n' | '\t' => f.write_char(c)?,
                c if c.is_control() => f.write_char(char::REPLACEMENT_CHARACTER)?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

/// A name in a run of text: its direction is its own, and whatever it holds cannot turn what stands beside it.
pub fn name(text: &str) -> String {
    format!("<bdi>{}</bdi>", Text(text))
}

/// `text` of at most `most` characters, cut with an ellipsis.
pub fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// A whole page. `body` is markup.
#[derive(Debug, Clone, Copy)]
pub struct Page<'a> {
    pub title: &'a str,
    pub body: &'a str,
    /// Rules beside [`STYLE`].
    pub style: &'a str,
    /// Empty: none. The page must say what matters without it.
    pub script: &'a str,
}

/// What every page looks like.
pub const STYLE: &str = include_str!("style.css");

impl Page<'_> {
    /// One HTML document, its policy inside for those who open it as a file.
    pub fn html(&self) -> String {
        let mut out =
            String::with_capacity(self.body.len() + STYLE.len() + self.style.len() + self.script.len() + 1024);
        out.push_str("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
        let policy = self.policy();
        let _ = writeln!(out, "<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">", Text(&policy));
        out.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
        out.push_str(
            "<meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n",
        );
        let _ = writeln!(out, "<title>{}</title>", Text(self.title));
        let _ = writeln!(out, "<style>{}</style>\n</head>\n<body>\n{}", self.rules(), self.body);
        if !self.script.is_empty() {
            let _ = writeln!(out, "<script>{}</script>", self.script);
        }
        out.push_str("</body>\n</html>\n");
        out
    }

    /// The Content-Security-Policy, as a header says it too (and with `frame-ancestors`, which only a header may).
    pub fn policy(&self) -> String {
        let mut policy = format!("default-src 'none'; style-src 'sha256-{}'", digest(&self.rules()));
        if !self.script.is_empty() {
            let _ = write!(policy, "; script-src 'sha256-{}'; connect-src 'self'", digest(self.script));
        }
        policy.push_str("; base-uri 'none'; form-action 'none'");
        policy
    }

    fn rules(&self) -> String {
        format!("{STYLE}{}", self.style)
    }
}

/// SHA-256 in base64, as a policy wants it.
fn digest(text: &str) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for three in Sha256::digest(text.as_bytes()).chunks(3) {
        let bits = three.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        for place in 0..4 {
            let letter = LETTERS.get((bits >> (18 - 6 * place) & 63) as usize).copied().unwrap_or(b'=');
            out.push(if place > three.len() { '=' } else { char::from(letter) });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_name_is_text() {
        let hostile = "</bdi><script>alert('x')</script>\u{1b}[31m\" onload=`1`&amp;";
        assert_eq!(
            name(hostile),
            "<bdi>&lt;/bdi&gt;&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;\u{fffd}[31m&quot; \
             onload=&#96;1&#96;&amp;amp;</bdi>"
        );
        assert_eq!(cut("أهلاً وسهلاً", 4), "أهلا…");
    }

    #[test]
    fn a_page_allows_itself_and_nothing_else() {
        // printf '' | openssl dgst -sha256 -binary | base64
        assert_eq!(digest(""), "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
        let page = Page { title: "<t>", body: "<p>b</p>", style: "", script: "" };
        assert!(page.html().contains("<title>&lt;t&gt;</title>"));
        assert!(!page.policy().contains("script-src") && !page.policy().contains("unsafe"));
        let page = Page { script: "1", ..page };
        assert!(page.policy().contains("script-src 'sha256-a4ayc/80/OGda4BO/1o/V0etpOqiLx1JwB5S3beHW0s='"));
    }
}
