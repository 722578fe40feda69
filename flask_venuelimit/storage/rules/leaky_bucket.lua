-- The rule of LeakyBucket; leaky_bucket.py is its other half.
--
-- State: { used, unit, at, birth }, kept under the tag "q". Sets no expiry: it says when the key may go.
--
-- take(state, now, cost, birth, quota, unit, refill, max_delay)
--   state      what is kept, or nil
--   now        microseconds
--   cost       whole turns; 0 only looks
--   birth      names the life that starts if there is no live state; an empty queue starts anew
--   quota      whole turns an idle bucket gives at once
--   unit       parts a turn is made of
--   refill     parts that drain each microsecond
--   max_delay  microseconds until the last turn may come
--   returns    allowed, state (nil: write nothing), remaining (hits), wait (microseconds, -1: none helps),
--              reset (microseconds), delay (microseconds), token, expires (microseconds, a point in time)
--
-- give_back(state, now, cost, token, quota, unit, refill, max_delay)
--   token      what take returned
--   returns    state, or nil where nothing changes

local leaky_bucket = { numbers = 4 }
leaky_bucket.fetch, leaky_bucket.read, leaky_bucket.write = bucket("q")

-- wait_for(late, cost, quota, refill) -> microseconds until late parts have drained, -1: never
local function wait_for(late, cost, quota, refill)
  if late <= 0 then
    return 0
  end
  return cost <= quota and divide_up(late, 1, refill) or -1
end

function leaky_bucket.take(state, now, cost, birth, quota, unit, refill, max_delay)
  local drained = drain(state, now, quota, unit, refill)
  local used, at = 0, now
  if drained then
    used, at, birth = drained[1], drained[3], drained[4]
  end
  local ahead = at - now
  local room = (max_delay - ahead) * refill
  local late = used + (cost - 1) * unit - room
  if cost > 0 and late <= 0 then
    local delay = ahead + divide_up(used + (cost - 1) * unit, 1, refill)
    used = used + cost * unit
    local reset = ahead + divide_up(used, 1, refill)
    local left = math.floor(-late / unit)
    return true, { used, unit, at, birth }, left, 0, reset, delay, birth, now + reset
  end
  local wait = wait_for(late, cost, quota, refill)
  local reset = ahead + divide_up(used, 1, refill)
  local left = math.max(0, math.floor((room - used) / unit) + 1)
  return wait == 0, redated(state, drained, 3), left, wait, reset, 0, "", now + reset
end

function leaky_bucket.give_back(state, now, cost, token, quota, unit, refill, max_delay)
  return undo(state, now, cost, token, quota, unit, refill)
end

rules["leaky-bucket"] = leaky_bucket
