//! What an Anima can do, and the walls around it.
