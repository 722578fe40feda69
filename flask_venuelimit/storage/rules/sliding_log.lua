-- The rule of SlidingLog; sliding_log.py is its other half.
--
-- State: a log of the admitted hits, as log.lua describes, kept under the tag "l". Sets no expiry: it says when the
-- key may go.
--
-- take(state, now, cost, birth, limit, window)
--   state    what is kept, or nil
--   now      microseconds
--   cost     whole hits; 0 only looks
--   birth    names the life that starts if there is no live state
--   limit    whole hits
--   window   microseconds
--   returns  allowed, state (nil: write nothing), remaining (hits), wait (microseconds, -1: none helps),
--            reset (microseconds), delay (microseconds), token, expires (microseconds, a point in time)
--
-- give_back(state, now, cost, token, limit, window)
--   token    what take returned
--   returns  state, or nil where nothing changes

local sliding_log = { numbers = 2 }
sliding_log.fetch, sliding_log.read, sliding_log.write = logging("l")

function sliding_log.take(state, now, cost, birth, limit, window)
  return enter(state, now, cost, birth, limit, window)
end

function sliding_log.give_back(state, now, cost, token, limit, window)
  return leave(state, now, token, window)
end

rules["sliding-log"] = sliding_log
