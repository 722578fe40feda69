-- The rule of TokenBucket; token_bucket.py is its other half.
--
-- State: { used, unit, at, birth }, kept under the tag "b". Sets no expiry: it says when the key may go.
--
-- take(state, now, cost, birth, capacity, unit, refill)
--   state     what is kept, or nil
--   now       microseconds
--   cost      whole tokens; 0 only looks
--   birth     names the life that starts if there is no live state; a full bucket starts anew
--   capacity  whole tokens
--   unit      parts a token is made of
--   refill    parts that come back each microsecond
--   returns   allowed, state (nil: write nothing), remaining (hits), wait (microseconds, -1: none helps),
--             reset (microseconds), delay (microseconds), token, expires (microseconds, a point in time)
--
-- give_back(state, now, cost, token, capacity, unit, refill)
--   token     what take returned
--   returns   state, or nil where nothing changes

local token_bucket = { numbers = 3 }
token_bucket.fetch, token_bucket.read, token_bucket.write = bucket("b")

-- wait_for(short, ahead, cost, capacity, refill) -> microseconds until short parts have come back, -1: never
local function wait_for(short, ahead, cost, capacity, refill)
  if short <= 0 then
    return 0
  end
  return cost <= capacity and ahead + divide_up(short, 1, refill) or -1
end

function token_bucket.take(state, now, cost, birth, capacity, unit, refill)
  local drained = drain(state, now, capacity, unit, refill)
  local used, at = 0, now
  if drained then
    used, at, birth = drained[1], drained[3], drained[4]
  end
  local short = used - (capacity - cost) * unit
  if cost > 0 and short <= 0 then
    used = used + cost * unit
    local reset = at - now + divide_up(used, 1, refill)
    return true, { used, unit, at, birth }, math.floor(-short / unit), 0, reset, 0, birth, now + reset
  end
  local wait = wait_for(short, at - now, cost, capacity, refill)
  local reset = at - now + divide_up(used, 1, refill)
  local room = math.max(0, capacity - divide_up(used, 1, unit))
  return wait == 0, redated(state, drained, 3), room, wait, reset, 0, "", now + reset
end

function token_bucket.give_back(state, now, cost, token, capacity, unit, refill)
  return undo(state, now, cost, token, capacity, unit, refill)
end

rules["token-bucket"] = token_bucket
