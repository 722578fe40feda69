-- The rule of FixedWindow; fixed_window.py is its other half.
--
-- State: { start, count, birth }, kept under the tag "f". Sets no expiry: it says when the key may go.
--
-- take(state, now, cost, birth, limit, window)
--   state    what is kept, or nil
--   now      microseconds
--   cost     whole hits; 0 only looks
--   birth    names the life that starts if there is no live state
--   limit    whole hits a window holds
--   window   microseconds
--   returns  allowed, state (nil: write nothing), remaining (hits), wait (microseconds, -1: none helps),
--            reset (microseconds), delay (microseconds), token, expires (microseconds, a point in time)
--
-- give_back(state, now, cost, token, limit, window)
--   token    what take returned
--   returns  state, or nil where nothing changes

local fixed_window = { numbers = 2 }
fixed_window.fetch, fixed_window.read, fixed_window.write = packing("f", 2)

-- roll(state, now, window) -> the state at now, or nil where its window is over
local function roll(state, now, window)
  if not state or now >= state[1] + window then
    return nil
  end
  return state[1] - now > window and { now, state[2], state[3] } or state
end

-- wait_for(count, cost, rest, limit) -> microseconds until cost fits, -1: none helps
local function wait_for(count, cost, rest, limit)
  if count + cost <= limit then
    return 0
  end
  return cost <= limit and rest or -1
end

function fixed_window.take(state, now, cost, birth, limit, window)
  local rolled = roll(state, now, window)
  local start, count = now, 0
  if rolled then
    start, count, birth = unpack(rolled)
  end
  local expires = start + window
  if cost > 0 and cost <= limit - count then
    count = count + cost
    return true, { start, count, birth }, limit - count, 0, expires - now, 0, birth, expires
  end
  local wait = wait_for(count, cost, expires - now, limit)
  local reset = rolled and expires - now or 0
  local after = redated(state, rolled, 1)
  return wait == 0, after, math.max(0, limit - count), wait, reset, 0, "", expires
end

function fixed_window.give_back(state, now, cost, token, limit, window)
  local rolled = roll(state, now, window)
  if not rolled or token ~= rolled[3] then
    return nil
  end
  local start, count, birth = unpack(rolled)
  return { start, math.max(0, count - cost), birth }
end

rules["fixed-window"] = fixed_window
