//! What both macros do with tokens.
use proc_macro::{Delimiter, Group, Literal, Punct, Spacing, Span, TokenStream, TokenTree};
use std::iter::Peekable;

pub type Tokens = Peekable<proc_macro::token_stream::IntoIter>;

pub struct Error {
    text: &'static str,
    at: Span,
}

impl Error {
    pub fn new(text: &'static str, at: Span) -> Self {
        Error { text, at }
    }

    /// `compile_error!("text")`, shown at the place.
    pub fn into_tokens(self) -> TokenStream {
        let mut text = Literal::string(self.text);
        text.set_span(self.at);
        let group = Group::new(Delimiter::Brace, TokenTree::from(text).into());
        let path = "::core::compile_error!".parse::<TokenStream>().unwrap();
        let all = path.into_iter().chain([TokenTree::from(group)]);
        all.map(|mut token| {
            token.set_span(self.at);
            token
        })
        .collect()
    }
}

pub fn is_punct(token: Option<&TokenTree>, wanted: char) -> bool {
    matches!(token, Some(TokenTree::Punct(p)) if p.as_char() == wanted)
}

pub fn is_word(token: Option<&TokenTree>, wanted: &str) -> bool {
    matches!(token, Some(TokenTree::Ident(i)) if i.to_string() == wanted)
}

pub fn place(tokens: &mut Tokens) -> Span {
    tokens.peek().map_or_else(Span::call_site, TokenTree::span)
}

/// Takes the attributes that come next; the contents of each, and the tokens as they were.
pub fn attributes(tokens: &mut Tokens) -> (Vec<TokenStream>, TokenStream) {
    let (mut contents, mut all) = (Vec::new(), TokenStream::new());
    while is_punct(tokens.peek(), '#') {
        all.extend(tokens.next());
        if let Some(TokenTree::Group(group)) = tokens.peek() {
            contents.push(group.stream());
        }
        all.extend(tokens.next());
    }
    (contents, all)
}

/// Takes `pub` or `pub(...)`, if that comes next.
pub fn visibility(tokens: &mut Tokens) -> TokenStream {
    let mut all = TokenStream::new();
    if is_word(tokens.peek(), "pub") {
        all.extend(tokens.next());
        if matches!(tokens.peek(), Some(TokenTree::Group(g)) if g.delimiter() == Delimiter::Parenthesis)
        {
            all.extend(tokens.next());
        }
    }
    all
}

/// Takes what stands before the next `end` that is not within `<...>`, and not `end` itself.
pub fn until(tokens: &mut Tokens, end: char) -> TokenStream {
    let (mut all, mut depth, mut arrow) = (TokenStream::new(), 0, false);
    while let Some(token) = tokens.peek() {
        if let TokenTree::Punct(p) = token {
            let c = p.as_char();
            if c == end && depth == 0 {
                break;
            }
            depth += i32::from(c == '<') - i32::from(c == '>' && !arrow);
            arrow = c == '-' && p.spacing() == Spacing::Joint;
        }
        all.extend(tokens.next());
    }
    all
}

/// One `name = value` or `name` of an attribute or of arguments.
pub struct Argument {
    pub name: String,
    pub value: Option<TokenTree>,
    pub at: Span,
}

/// `name = value, name, ...`
pub fn arguments(stream: TokenStream) -> Result<Vec<Argument>, Error> {
    let mut tokens = stream.into_iter().peekable();
    let mut found = Vec::new();
    while let Some(token) = tokens.next() {
        let (TokenTree::Ident(name), at) = (&token, token.span()) else {
            return Err(Error::new("here stands the name of an argument", token.span()));
        };
        let mut value = None;
        if is_punct(tokens.peek(), '=') {
            tokens.next();
            value = tokens.next();
        }
        found.push(Argument { name: name.to_string(), value, at });
        if tokens.peek().is_some() && !is_punct(tokens.next().as_ref(), ',') {
            return Err(Error::new("arguments are separated by commas", at));
        }
    }
    Ok(found)
}

/// The text of a string literal.
pub fn string(argument: &Argument) -> Result<String, Error> {
    let text = argument.value.as_ref().map(ToString::to_string).unwrap_or_default();
    match text.strip_prefix('"').and_then(|t| t.strip_suffix('"')) {
        Some(text) if !text.contains('\\') => Ok(text.to_owned()),
        _ => Err(Error::new("the value is a string", argument.at)),
    }
}

/// The tokens of a text in which `@0`, `@1`, ... stand for `parts`. These keep their places, so that
/// what the compiler finds wrong with them is shown where they are.
pub fn template(text: &str, parts: &[TokenStream]) -> TokenStream {
    fill(text.parse().expect("what the macro makes is Rust"), parts)
}

fn fill(stream: TokenStream, parts: &[TokenStream]) -> TokenStream {
    let mut all = TokenStream::new();
    let mut tokens = stream.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Punct(p) if p.as_char() == '@' => {
                let number = tokens.next().and_then(|t| t.to_string().parse::<usize>().ok());
                all.extend(number.and_then(|n| parts.get(n)).cloned());
            }
            TokenTree::Group(group) => {
                let mut filled = Group::new(group.delimiter(), fill(group.stream(), parts));
                filled.set_span(group.span());
                all.extend([TokenTree::from(filled)]);
            }
            other => all.extend([other]),
        }
    }
    all
}

/// `'static` for every lifetime.
pub fn with_static(stream: TokenStream) -> TokenStream {
    let mut all = TokenStream::new();
    let mut tokens = stream.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Punct(p) if p.as_char() == '\'' => {
                let name = proc_macro::Ident::new("static", p.span());
                let mut quote = Punct::new('\'', Spacing::Joint);
                quote.set_span(p.span());
                tokens.next();
                all.extend([TokenTree::from(quote), TokenTree::from(name)]);
            }
            // `&str` has a lifetime that is not written; in a static that is 'static.
            TokenTree::Group(group) => {
                let mut changed = Group::new(group.delimiter(), with_static(group.stream()));
                changed.set_span(group.span());
                all.extend([TokenTree::from(changed)]);
            }
            other => all.extend([other]),
        }
    }
    all
}
