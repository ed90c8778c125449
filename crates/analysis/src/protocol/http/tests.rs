//! Dialogues by hand: what the corpus lacks.
