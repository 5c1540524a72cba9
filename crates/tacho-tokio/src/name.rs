//! What futures are called: the name of their type, as short as it still says something.

/// Longer than this, what stands between angle brackets is left out.
const LONGEST: usize = 120;

fn is_path(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == ':' || c == '{' || c == '}'
}

/// `app::serve::{{closure}}::{{closure}}` is `app::serve`: an async block in an async function.
fn without_closures(path: &str) -> String {
    let mut short = String::with_capacity(path.len());
    for part in path.split("::").filter(|part| !part.starts_with('{') && !part.is_empty()) {
        if !short.is_empty() {
            short.push_str("::");
        }
        short.push_str(part);
    }
    short
}

/// Whether it is an async block in an async function: others in it have the same name, and the place of
/// the spawn tells them apart.
pub(crate) fn is_block(type_name: &str) -> bool {
    type_name.ends_with("{{closure}}::{{closure}}")
}

/// The type as people would write it where all names are imported. The outermost path stays whole,
/// because async functions are told apart by it.
pub(crate) fn short(type_name: &str) -> String {
    let mut text = String::with_capacity(type_name.len());
    let mut rest = type_name;
    while let Some(c) = rest.chars().next() {
        let end = if is_path(c) { rest.find(|c| !is_path(c)) } else { Some(c.len_utf8()) };
        let (piece, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after;
        if !is_path(c) {
            text.push(c);
            continue;
        }
        let path = without_closures(piece);
        let wraps = path.starts_with("core::") || path.starts_with("alloc::");
        match path.rfind("::") {
            Some(at) if !text.is_empty() || wraps => text.push_str(&path[at + 2..]),
            _ => text.push_str(&path),
        }
    }
    if text.len() > LONGEST {
        if let Some(at) = text.find('<') {
            text.truncate(at);
            text.push_str("<..>");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn async_blocks_are_called_like_their_function() {
        assert_eq!(short("app::serve::{{closure}}"), "app::serve");
        assert_eq!(short("app::serve::{{closure}}::{{closure}}"), "app::serve");
    }

    #[test]
    fn only_the_outermost_path_is_whole() {
        assert_eq!(
            short("hyper::conn::Connection<hyper_util::rt::TokioIo<tokio::net::TcpStream>, u8>"),
            "hyper::conn::Connection<TokioIo<TcpStream>, u8>"
        );
        assert_eq!(
            short("core::pin::Pin<alloc::boxed::Box<dyn core::future::Future<Output = ()>>>"),
            "Pin<Box<dyn Future<Output = ()>>>"
        );
    }

    #[test]
    fn what_is_too_long_loses_its_arguments() {
        let long = format!("app::Wrapper<{}>", "app::Inner, ".repeat(40));
        assert_eq!(short(&long), "app::Wrapper<..>");
    }

    #[test]
    fn any_text_is_taken() {
        for text in ["", "<", "::", "{{closure}}", "<T as é>::ü", "[u8; 4]"] {
            short(text);
        }
    }
}
