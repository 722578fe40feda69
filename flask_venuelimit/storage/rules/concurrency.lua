-- The rule of Concurrency; concurrency.py is its other half.
--
-- State: a log of the slots in use, as log.lua describes, kept under the tag "c". Sets no expiry: it says when the
-- key may go.
--
-- take(state, now, cost, birth, limit, lease)
--   state    what is kept, or nil
--   now      microseconds
--   cost     what the slot weighs; 0 only looks
--   birth    names the life that starts if there is no live state
--   limit    how much may be in use at once
--   lease    microseconds
--   returns  allowed, state (nil: write nothing), remaining (hits), wait (microseconds, -1: none helps),
--            reset (microseconds), delay (microseconds), token, expires (microseconds, a point in time)
--
-- give_back(state, now, cost, token, limit, lease)
--   token    what take returned
--   returns  state, or nil where nothing changes
--
-- renew(state, now, token, limit, lease)
--   token    what take returned
--   returns  state, or nil where nothing changes

local concurrency = { numbers = 2 }
concurrency.fetch, concurrency.read, concurrency.write = logging("c")

local SECOND = 1000000

function concurrency.take(state, now, cost, birth, limit, lease)
  local allowed, after, remaining, wait, _, delay, token, expires = enter(state, now, cost, birth, limit, lease)
  return allowed, after, remaining, wait > 0 and SECOND or wait, SECOND, delay, token, expires
end

function concurrency.give_back(state, now, cost, token, limit, lease)
  return leave(state, now, token, lease)
end

function concurrency.renew(state, now, token, limit, lease)
  local live = dated(state, now, lease)
  local index = live and find(live, now, token, lease)
  if not index then
    return nil
  end
  local cost = sum_before(live, index + 1) - sum_before(live, index)
  local _, _, serial = entry(live, index)
  return appended(removed(live, index), 0, math.max(now, newest(live)), cost, serial)
end

rules["concurrency"] = concurrency
