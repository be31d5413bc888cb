//! Reading an expression: characters to tokens, tokens to a tree.

use super::expression::{FIELDS, Node, Term};
use super::values::{field_named, read_term};

/// How deep parentheses may be nested.
pub const MAX_DEPTH: usize = 32;

/// How many terms one expression may have.
pub const MAX_TERMS: usize = 64;

/// What is wrong with an expression, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {message}")]
pub struct FilterError {
    /// The place of the fault, counted in characters from 1.
    pub column: usize,
    /// What was expected there.
    pub message: String,
}

/// Reads a whole text as one expression.
pub(super) fn parse(text: &str) -> Result<Node, FilterError> {
    let mut lexer = Lexer { chars: text.chars().collect(), at: 0, terms: 0 };
    let next = lexer.token()?;
    let mut parser = Parser { lexer, next, depth: 0 };
    let root = parser.any(None)?;
    match parser.next.kind {
        TokenKind::End => Ok(root),
        // Whatever else may follow has been taken in by then.
        _ => Err(fault(parser.next.column, "this \")\" has no matching \"(\"")),
    }
}

/// Whether a value without quotation marks cannot hold the character.
pub(super) fn ends_bare_value(c: char) -> bool {
    c.is_whitespace() || matches!(c, '(' | ')' | '"')
}

fn fault(column: usize, message: impl Into<String>) -> FilterError {
    FilterError { column, message: message.into() }
}

struct Token {
    column: usize,
    kind: TokenKind,
}

enum TokenKind {
    Open,
    Close,
    And,
    Or,
    Not,
    Term(Term),
    End,
}

/// Recursive descent with one token of foresight; only parentheses recurse, and they are counted.
struct Parser {
    lexer: Lexer,
    next: Token,
    depth: usize,
}

impl Parser {
    fn advance(&mut self) -> Result<Token, FilterError> {
        let following = self.lexer.token()?;
        Ok(std::mem::replace(&mut self.next, following))
    }

    /// One or more conjunctions with `or` between them; `after` is the word or bracket before the first.
    fn any(&mut self, after: Option<&str>) -> Result<Node, FilterError> {
        let first = self.all(after)?;
        let mut children = vec![first];
        while matches!(self.next.kind, TokenKind::Or) {
            self.advance()?;
            children.push(self.all(Some("or"))?);
        }
        Ok(joined(children, Node::Any))
    }

    /// One or more operands with `and`, or nothing, between them.
    fn all(&mut self, after: Option<&str>) -> Result<Node, FilterError> {
        let first = self.operand(after)?;
        let mut children = vec![first];
        loop {
            match self.next.kind {
                TokenKind::And => {
                    self.advance()?;
                    children.push(self.operand(Some("and"))?);
                }
                TokenKind::Open | TokenKind::Not | TokenKind::Term(_) => children.push(self.operand(None)?),
                TokenKind::Close | TokenKind::Or | TokenKind::End => break,
            }
        }
        Ok(joined(children, Node::All))
    }

    /// A term or a group, with any number of `not` before it.
    fn operand(&mut self, after: Option<&str>) -> Result<Node, FilterError> {
        let mut negated = false;
        let mut previous = after;
        while matches!(self.next.kind, TokenKind::Not) {
            self.advance()?;
            negated = !negated;
            previous = Some("not");
        }
        // Before the next token is read: of two faults the first one is named.
        if !matches!(self.next.kind, TokenKind::Term(_) | TokenKind::Open) {
            return Err(fault(self.next.column, missing_operand(&self.next.kind, previous)));
        }
        let token = self.advance()?;
        let node = match token.kind {
            TokenKind::Term(term) => Node::Term(term),
            _ => self.group(token.column)?,
        };
        Ok(if negated { negation(node) } else { node })
    }

    /// The rest of a group whose opening parenthesis stood at `column`.
    fn group(&mut self, column: usize) -> Result<Node, FilterError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(fault(column, format!("parentheses may be nested at most {MAX_DEPTH} deep")));
        }
        let node = self.any(Some("("))?;
        if !matches!(self.next.kind, TokenKind::Close) {
            return Err(fault(column, "this \"(\" is not closed"));
        }
        self.advance()?;
        self.depth -= 1;
        Ok(node)
    }
}

/// Joins operands; one alone stays itself.
fn joined(mut children: Vec<Node>, join: fn(Vec<Node>) -> Node) -> Node {
    match (children.pop(), children.is_empty()) {
        (Some(only), true) => only,
        (last, _) => {
            children.extend(last);
            join(children)
        }
    }
}

fn negation(node: Node) -> Node {
    match node {
        Node::Not(inner) => *inner,
        other => Node::Not(Box::new(other)),
    }
}

fn missing_operand(found: &TokenKind, previous: Option<&str>) -> String {
    match (previous, found) {
        (Some(word), _) => format!("expected a term after \"{word}\""),
        (None, TokenKind::And) => "expected a term before \"and\"".to_owned(),
        (None, TokenKind::Or) => "expected a term before \"or\"".to_owned(),
        (None, TokenKind::Close) => "this \")\" has no matching \"(\"".to_owned(),
        (None, _) => "expected a term such as from:@example.com".to_owned(),
    }
}

/// Cuts the text into tokens; works on characters, so that a column is a place in a list.
struct Lexer {
    chars: Vec<char>,
    at: usize,
    terms: usize,
}

impl Lexer {
    fn token(&mut self) -> Result<Token, FilterError> {
        self.take_while(char::is_whitespace);
        let column = self.column();
        let kind = match self.peek() {
            None => TokenKind::End,
            Some('(') => self.single(TokenKind::Open),
            Some(')') => self.single(TokenKind::Close),
            Some('"') => {
                return Err(fault(column, "expected a field before the quoted text, as in subject:\"…\""));
            }
            Some(_) => self.word(column)?,
        };
        Ok(Token { column, kind })
    }

    /// A keyword, or a field with its value.
    fn word(&mut self, column: usize) -> Result<TokenKind, FilterError> {
        let word = self.take_while(|c| c != ':' && !ends_bare_value(c));
        if self.peek() == Some(':') {
            self.at += 1;
            return self.term(column, &word).map(TokenKind::Term);
        }
        match word.to_ascii_lowercase().as_str() {
            "and" => Ok(TokenKind::And),
            "or" => Ok(TokenKind::Or),
            "not" => Ok(TokenKind::Not),
            _ => Err(fault(column, format!("expected a term such as subject:{word}, found \"{word}\""))),
        }
    }

    /// The value of a field whose colon has just been read.
    fn term(&mut self, column: usize, word: &str) -> Result<Term, FilterError> {
        let field = field_named(word).ok_or_else(|| fault(column, unknown_field(word)))?;
        self.terms += 1;
        if self.terms > MAX_TERMS {
            return Err(fault(column, format!("an expression may have at most {MAX_TERMS} terms")));
        }
        let value_column = self.column();
        let value = if self.peek() == Some('"') { self.quoted_value()? } else { self.bare_value()? };
        if value.is_empty() {
            return Err(fault(value_column, format!("expected a value after \"{field}:\"")));
        }
        read_term(field, &value).map_err(|message| fault(value_column, message))
    }

    fn bare_value(&mut self) -> Result<String, FilterError> {
        let value = self.take_while(|c| !ends_bare_value(c));
        if self.peek() == Some('"') {
            return Err(fault(self.column(), "put the whole value in quotation marks"));
        }
        Ok(value)
    }

    fn quoted_value(&mut self) -> Result<String, FilterError> {
        let opening = self.column();
        self.at += 1;
        let mut value = String::new();
        while let Some(c) = self.peek() {
            self.at += 1;
            match c {
                '"' => return Ok(value),
                '\\' => value.push(self.escaped()?),
                other => value.push(other),
            }
        }
        Err(fault(opening, "this quotation mark is not closed"))
    }

    fn escaped(&mut self) -> Result<char, FilterError> {
        match self.peek() {
            Some(c @ ('"' | '\\')) => {
                self.at += 1;
                Ok(c)
            }
            _ => Err(fault(self.column() - 1, r"a backslash in quotation marks must be written as \\")),
        }
    }

    fn single(&mut self, kind: TokenKind) -> TokenKind {
        self.at += 1;
        kind
    }

    fn take_while(&mut self, keep: impl Fn(char) -> bool) -> String {
        let rest = self.chars.get(self.at..).unwrap_or_default();
        let taken: String = rest.iter().take_while(|c| keep(**c)).collect();
        self.at += taken.chars().count();
        taken
    }

    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn column(&self) -> usize {
        self.at + 1
    }
}

fn unknown_field(word: &str) -> String {
    if let Some(field) = word.strip_prefix('-').and_then(field_named) {
        return format!("write \"not {field}:\" instead of \"-{field}:\"");
    }
    format!("unknown field \"{word}\"; the fields are {}", FIELDS.join(", "))
}
