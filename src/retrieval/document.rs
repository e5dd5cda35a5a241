//! A tool as retrieval reads it, and the texts that become its vector. NOT provider schemas.

/// A tool as retrieval reads it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Document {
    pub name: String,
    /// The tool's description, or the catalog's `search_text` in its place.
    pub description: String,
    pub keywords: Vec<String>,
    pub category: String,
    /// Top-level parameters.
    pub parameters: Vec<Parameter>,
}

/// A top-level parameter of a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Parameter {
    pub name: String,
    pub description: String,
    /// Enum values.
    pub values: Vec<String>,
}
