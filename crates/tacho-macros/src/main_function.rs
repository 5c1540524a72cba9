//! `#[main]`.
use crate::tokens::{arguments, attributes, is_word, place, string, template, Argument, Error};
use proc_macro::{Delimiter, TokenStream, TokenTree};

/// What stands in the brackets of the attribute.
#[derive(Default)]
struct Wishes {
    current_thread: bool,
    workers: usize,
    name: Option<String>,
    /// What the program calls the crate tacho-tokio.
    path: Option<String>,
}

impl Wishes {
    fn read(given: TokenStream) -> Result<Self, Error> {
        let mut wishes = Wishes::default();
        for argument in arguments(given)? {
            match argument.name.as_str() {
                "flavor" => wishes.current_thread = is_current_thread(&argument)?,
                "worker_threads" => wishes.workers = count(&argument)?,
                "name" => wishes.name = Some(string(&argument)?),
                "crate" => wishes.path = Some(string(&argument)?),
                _ => {
                    let text = "there are flavor, worker_threads, name and crate";
                    return Err(Error::new(text, argument.at));
                }
            }
        }
        Ok(wishes)
    }
}

fn is_current_thread(argument: &Argument) -> Result<bool, Error> {
    match string(argument)?.as_str() {
        "current_thread" => Ok(true),
        "multi_thread" => Ok(false),
        _ => Err(Error::new("there are \"current_thread\" and \"multi_thread\"", argument.at)),
    }
}

fn count(argument: &Argument) -> Result<usize, Error> {
    let text = argument.value.as_ref().map(ToString::to_string).unwrap_or_default();
    match text.replace('_', "").parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(Error::new("worker_threads is a number above 0", argument.at)),
    }
}

/// Under which name Cargo.toml has tacho-tokio, as by `tacho = { package = "tacho-tokio", ... }`.
fn renamed() -> Option<String> {
    let folder = std::env::var_os("CARGO_MANIFEST_DIR")?;
    let text = std::fs::read_to_string(std::path::Path::new(&folder).join("Cargo.toml")).ok()?;
    let line = text.lines().find(|line| {
        let bare: String = line.chars().filter(|c| !c.is_whitespace()).collect();
        bare.contains("package=\"tacho-tokio\"")
    })?;
    let name = line.split('=').next()?.trim().replace('-', "_");
    (!name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_')).then_some(name)
}

/// The function without `async`, and its body.
fn parts(item: TokenStream) -> Result<(TokenStream, TokenTree), Error> {
    let mut tokens = item.into_iter().peekable();
    let (_, mut head) = attributes(&mut tokens);
    let (mut is_async, mut word_before) = (false, None);
    loop {
        let at = place(&mut tokens);
        let token = tokens.next().ok_or(Error::new("this is for an async function", at))?;
        match &token {
            TokenTree::Ident(word) if word.to_string() == "async" && !is_async => {
                is_async = true;
                continue;
            }
            TokenTree::Group(g) if g.delimiter() == Delimiter::Brace && tokens.peek().is_none() => {
                if !is_async {
                    return Err(Error::new("the function has to be async", at));
                }
                return Ok((head, token));
            }
            TokenTree::Group(g)
                if is_word(word_before.as_ref(), "main") && !g.stream().is_empty() =>
            {
                return Err(Error::new("main takes no arguments", at));
            }
            _ => {}
        }
        word_before = Some(token.clone());
        head.extend([token]);
    }
}

pub fn expand(given: TokenStream, item: TokenStream) -> Result<TokenStream, Error> {
    let wishes = Wishes::read(given)?;
    let (head, body) = parts(item)?;
    let path = wishes.path.or_else(renamed).unwrap_or_else(|| "tacho_tokio".to_owned());
    let name = match wishes.name {
        Some(name) => format!("Some({name:?})"),
        None => "None".to_owned(),
    };
    let code = format!(
        "@0 {{
            ::{path}::__private::run({}, {}usize, ::core::option::Option::{name}, async move @1)
        }}",
        wishes.current_thread, wishes.workers,
    );
    Ok(template(&code, &[head, body.into()]))
}
