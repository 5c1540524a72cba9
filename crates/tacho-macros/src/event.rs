//! `derive(Event)`.
use crate::tokens::{
    arguments, attributes, is_punct, is_word, place, string, template, until, visibility,
    with_static, Error, Tokens,
};
use proc_macro::{Delimiter, TokenStream, TokenTree};

/// What `#[tacho(...)]` says.
#[derive(Default)]
struct Wishes {
    name: Option<String>,
    path: Option<String>,
    skip: bool,
}

impl Wishes {
    fn read(attributes: Vec<TokenStream>) -> Result<Self, Error> {
        let mut wishes = Wishes::default();
        for attribute in attributes {
            let mut tokens = attribute.into_iter();
            if !is_word(tokens.next().as_ref(), "tacho") {
                continue;
            }
            let Some(TokenTree::Group(inside)) = tokens.next() else { continue };
            for argument in arguments(inside.stream())? {
                match argument.name.as_str() {
                    "name" => wishes.name = Some(string(&argument)?),
                    "crate" => wishes.path = Some(string(&argument)?),
                    "skip" => wishes.skip = true,
                    _ => return Err(Error::new("there are name, crate and skip", argument.at)),
                }
            }
        }
        Ok(wishes)
    }
}

struct Field {
    name: TokenTree,
    of_type: TokenStream,
}

/// `<'a, 'b: 'a>`: what stands after `impl`, and after the name of the struct.
fn generics(tokens: &mut Tokens) -> Result<(TokenStream, String), Error> {
    let mut names = String::new();
    if !is_punct(tokens.peek(), '<') {
        return Ok((TokenStream::new(), names));
    }
    tokens.next();
    let declared = until(tokens, '>');
    tokens.next();
    let mut parameters = declared.clone().into_iter().peekable();
    while parameters.peek().is_some() {
        let at = place(&mut parameters);
        if !is_punct(parameters.next().as_ref(), '\'') {
            return Err(Error::new("an event can have lifetimes, but no types as parameters", at));
        }
        names += &format!("'{},", parameters.next().map(|t| t.to_string()).unwrap_or_default());
        until(&mut parameters, ',');
        parameters.next();
    }
    Ok((declared, names))
}

fn fields(stream: TokenStream) -> Result<Vec<Field>, Error> {
    let mut tokens = stream.into_iter().peekable();
    let mut found = Vec::new();
    while tokens.peek().is_some() {
        let wishes = Wishes::read(attributes(&mut tokens).0)?;
        visibility(&mut tokens);
        let Some(name) = tokens.next() else { break };
        tokens.next(); // :
        let of_type = until(&mut tokens, ',');
        tokens.next();
        if !wishes.skip {
            found.push(Field { name, of_type });
        }
    }
    Ok(found)
}

pub fn derive(input: TokenStream) -> Result<TokenStream, Error> {
    let mut tokens = input.into_iter().peekable();
    let wishes = Wishes::read(attributes(&mut tokens).0)?;
    visibility(&mut tokens);
    let only = "an event is a struct with named fields";
    let at = place(&mut tokens);
    if !is_word(tokens.next().as_ref(), "struct") {
        return Err(Error::new(only, at));
    }
    let name = tokens.next().expect("a struct has a name");
    let (declared, used) = generics(&mut tokens)?;
    let mut bounds = TokenStream::new();
    let body = loop {
        match tokens.next() {
            Some(TokenTree::Group(g)) if g.delimiter() == Delimiter::Brace => break g.stream(),
            Some(TokenTree::Group(g)) if g.delimiter() == Delimiter::Parenthesis => {
                return Err(Error::new(only, name.span()));
            }
            None => return Err(Error::new(only, name.span())),
            Some(TokenTree::Punct(p)) if p.as_char() == ';' => {
                return Err(Error::new(only, name.span()));
            }
            Some(token) => bounds.extend([token]),
        }
    };
    let fields = fields(body)?;
    if fields.is_empty() || fields.len() > 16 {
        return Err(Error::new("an event has 1 to 16 fields", name.span()));
    }
    let text = wishes.name.unwrap_or_else(|| plain(&name));
    let path = wishes.path.unwrap_or_else(|| "tacho".to_owned());
    Ok(implementation(&format!("::{path}"), &text, [name.into(), declared, bounds], &used, &fields))
}

/// The name without `r#`.
fn plain(name: &TokenTree) -> String {
    name.to_string().trim_start_matches("r#").to_owned()
}

fn implementation(
    path: &str,
    text: &str,
    struct_: [TokenStream; 3],
    used: &str,
    fields: &[Field],
) -> TokenStream {
    let mut parts: Vec<TokenStream> = struct_.into();
    let (mut described, mut put) = (String::new(), String::new());
    for field in fields {
        let (member, of_type, fixed) = (parts.len(), parts.len() + 1, parts.len() + 2);
        parts.push(field.name.clone().into());
        parts.push(field.of_type.clone());
        parts.push(with_static(field.of_type.clone()));
        let name = plain(&field.name);
        described += &format!(
            "{path}::__Field::new(<@{fixed} as {path}::Value>::TYPE, {:?}),",
            format!("{name}\0"),
        );
        put += &format!("<@{of_type} as {path}::Value>::put(&self.@{member}, values);");
    }
    let count = fields.len();
    let code = format!(
        "impl<@1> {path}::Event for @0<{used}> @2 {{
            #[inline]
            fn record(&self) {{
                static FIELDS: [{path}::__Field; {count}] = [{described}];
                static SCHEMA: {path}::__Schema = {path}::__Schema::new({:?}, &FIELDS);
                SCHEMA.record(|values| {{ {put} }});
            }}
        }}",
        format!("{text}\0"),
    );
    template(&code, &parts)
}
