//! `#[boxed]`: an async function whose future is boxed, so that the crate that defines it compiles its body.
//!
//! The body of an async function is compiled where its future is polled. Without this, every crate that calls an
//! operation would compile it again, with all that it calls.

use proc_macro::{Delimiter, Group, Ident, Punct, Spacing, Span, TokenStream, TokenTree};

/// Makes `async fn NAME(…) -> T` a function that returns a boxed future of `T`, which lives as long as what the arguments
/// borrow. It is for functions without generic parameters.
#[proc_macro_attribute]
pub fn boxed(arguments: TokenStream, function: TokenStream) -> TokenStream {
    if !arguments.is_empty() {
        return error("boxed takes no arguments");
    }
    expand(function).unwrap_or_else(|| error("boxed is for async functions without generic parameters"))
}

fn expand(function: TokenStream) -> Option<TokenStream> {
    let tokens: Vec<TokenTree> = function.into_iter().collect();
    let is_ident =
        |token: &TokenTree, name: &str| matches!(token, TokenTree::Ident(it) if it.to_string() == name);
    let place = tokens.iter().position(|token| is_ident(token, "async"))?;
    let (before, rest) = (tokens.get(..place)?, tokens.get(place + 1..)?);
    let [keyword, name, TokenTree::Group(parameters), after @ .., TokenTree::Group(body)] = rest else {
        return None;
    };
    if !is_ident(keyword, "fn") || parameters.delimiter() != Delimiter::Parenthesis {
        return None;
    }
    let output: TokenStream = match after {
        [] => "()".parse().ok()?,
        [TokenTree::Punct(_), TokenTree::Punct(_), output @ ..] => output.iter().cloned().collect(),
        _ => return None,
    };
    let future = "::core::pin::Pin<::std::boxed::Box<dyn ::core::future::Future<Output = ";
    let parts: [TokenStream; 6] = [
        before.iter().cloned().collect(),
        [keyword.clone(), name.clone()].into_iter().collect(),
        "<'f>".parse().ok()?,
        TokenTree::Group(with_lifetimes(parameters)).into(),
        format!("-> {future} {output}> + ::core::marker::Send + 'f>>").parse().ok()?,
        TokenTree::Group(Group::new(Delimiter::Brace, running(body)?)).into(),
    ];
    Some(parts.into_iter().collect())
}

/// Names what a function borrows: `&T` and `Row<'_>` become `&'f T` and `Row<'f>`.
fn with_lifetimes(group: &Group) -> Group {
    let mut named = TokenStream::new();
    let mut tokens = group.stream().into_iter().peekable();
    while let Some(token) = tokens.next() {
        let is_named = matches!(tokens.peek(), Some(TokenTree::Punct(next)) if next.as_char() == '\'');
        match token {
            TokenTree::Punct(sign) if sign.as_char() == '&' && !is_named => {
                named.extend([TokenTree::Punct(sign)]);
                named.extend(lifetime());
            }
            TokenTree::Punct(sign) if sign.as_char() == '\'' => match tokens.next() {
                Some(TokenTree::Ident(name)) if name.to_string() == "_" => named.extend(lifetime()),
                name => named.extend([Some(TokenTree::Punct(sign)), name].into_iter().flatten()),
            },
            TokenTree::Group(inner) => named.extend([TokenTree::Group(with_lifetimes(&inner))]),
            other => named.extend([other]),
        }
    }
    let mut renamed = Group::new(group.delimiter(), named);
    renamed.set_span(group.span());
    renamed
}

fn lifetime() -> [TokenTree; 2] {
    let sign = Punct::new('\'', Spacing::Joint);
    [TokenTree::Punct(sign), TokenTree::Ident(Ident::new("f", Span::call_site()))]
}

fn running(body: &Group) -> Option<TokenStream> {
    let head: TokenStream = "async move".parse().ok()?;
    let block: TokenStream = [head, TokenTree::Group(body.clone()).into()].into_iter().collect();
    let pin: TokenStream = "::std::boxed::Box::pin".parse().ok()?;
    Some([pin, TokenTree::Group(Group::new(Delimiter::Parenthesis, block)).into()].into_iter().collect())
}

fn error(message: &str) -> TokenStream {
    format!("::core::compile_error!({message:?});").parse().unwrap_or_default()
}
