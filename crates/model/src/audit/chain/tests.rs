//! The recipe.
