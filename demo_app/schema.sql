-- Everything the quiz remembers. Run at every start, so each statement has to be harmless when repeated.

CREATE TABLE IF NOT EXISTS host (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE COLLATE NOCASE,
    password TEXT NOT NULL                         -- a werkzeug hash
);

CREATE TABLE IF NOT EXISTS game (
    id INTEGER PRIMARY KEY,
    code TEXT NOT NULL UNIQUE,                     -- what people type to join
    host_id INTEGER NOT NULL REFERENCES host (id),
    title TEXT NOT NULL,
    question INTEGER NOT NULL DEFAULT 0,           -- 0: not begun; beyond the last: over
    created TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP
);

CREATE TABLE IF NOT EXISTS player (
    id INTEGER PRIMARY KEY,
    game_id INTEGER NOT NULL REFERENCES game (id) ON DELETE CASCADE,
    participant TEXT NOT NULL,                     -- the session's participant_id
    name TEXT NOT NULL COLLATE NOCASE,
    UNIQUE (game_id, participant),
    UNIQUE (game_id, name)
);

CREATE TABLE IF NOT EXISTS answer (
    player_id INTEGER NOT NULL REFERENCES player (id) ON DELETE CASCADE,
    question INTEGER NOT NULL,
    choice INTEGER NOT NULL,
    correct INTEGER NOT NULL,                      -- 1 or 0: what it adds to the score
    PRIMARY KEY (player_id, question)
) WITHOUT ROWID;
