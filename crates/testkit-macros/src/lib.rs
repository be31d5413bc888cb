//! `#[both_engines]`: one test, a case for each engine. The cases run side by side, each has its own line in a report,
//! and a run can leave one engine out by name.

use proc_macro::{TokenStream, TokenTree};

/// Makes the cases `NAME::sqlite` and `NAME::postgres` of `async fn NAME(engine: Engine)`. Arguments go to
/// `tokio::test`.
#[proc_macro_attribute]
pub fn both_engines(arguments: TokenStream, test: TokenStream) -> TokenStream {
    let Some(name) = name_of(test.clone()) else {
        return error("both_engines is for functions");
    };
    let arguments = if arguments.is_empty() { String::new() } else { format!("({arguments})") };
    let case = |case: &str, engine: &str| {
        format!(
            "#[::tokio::test{arguments}] async fn {case}() {{
                ::std::boxed::Box::pin(super::{name}(::testkit::Engine::{engine})).await;
            }}"
        )
    };
    let cases = format!("mod {name} {{ {} {} }}", case("sqlite", "Sqlite"), case("postgres", "Postgres"));
    let Ok(cases) = cases.parse::<TokenStream>() else {
        return error("both_engines takes the arguments of tokio::test");
    };
    [test, cases].into_iter().collect()
}

/// The name of a function, which follows `fn`.
fn name_of(function: TokenStream) -> Option<String> {
    let mut tokens = function.into_iter();
    tokens.find(|token| matches!(token, TokenTree::Ident(ident) if ident.to_string() == "fn"))?;
    tokens.next().map(|name| name.to_string())
}

fn error(message: &str) -> TokenStream {
    format!("::core::compile_error!({message:?});").parse().unwrap_or_default()
}
