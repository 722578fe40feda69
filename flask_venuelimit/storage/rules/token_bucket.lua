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
local read_bucket
read_bucket, token_bucket.write = packing("b", 3)

local MOST = 2 ^ 53 - 1 -- parts; more cannot be counted one by one

function token_bucket.read(text)
  local state = read_bucket(text)
  -- parts of no size, or of one that cannot be divided by, are no state
  if state and (state[2] < 1 or state[2] > SAFE / 2) then
    return nil
  end
  return state
end

-- drain(state, now, capacity, unit, refill) -> the state at now, in parts of unit, or nil where it is full
local function drain(state, now, capacity, unit, refill)
  if not state then
    return nil
  end
  local used, old, at, birth = unpack(state)
  if old ~= unit then
    used = math.min(MOST, divide_up(used, unit, old))
  end
  if at - now > divide_up(capacity, unit, refill) then
    at = now
  end
  if now > at then
    -- the product is only formed where it is small
    local full_in = divide_up(used, 1, refill)
    used = now - at >= full_in and 0 or used - (now - at) * refill
    at = now
  end
  return used > 0 and { used, unit, at, birth } or nil
end

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
  local reset = drained and at - now + divide_up(used, 1, refill) or 0
  local room = math.max(0, capacity - divide_up(used, 1, unit))
  return wait == 0, redated(state, drained, 3), room, wait, reset, 0, "", now + reset
end

function token_bucket.give_back(state, now, cost, token, capacity, unit, refill)
  local drained = drain(state, now, capacity, unit, refill)
  if not drained or token ~= drained[4] then
    return nil
  end
  return { math.max(0, drained[1] - cost * unit), unit, drained[3], drained[4] }
end

rules["token-bucket"] = token_bucket
