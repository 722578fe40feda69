-- The rule of SlidingWindow; sliding_window.py is its other half.
--
-- State: { start, previous, current, turn, birth }, kept under the tag "s"; turn counts the windows since
-- birth. Sets no expiry: it says when the key may go.
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

local sliding_window = { numbers = 2 }
sliding_window.fetch, sliding_window.read, sliding_window.write = packing("s", 4)

-- anchor(start, now, window) -> where a window starts: now if a clock stepped back by more than a window
local function anchor(start, now, window)
  return start - now > window and now or start
end

-- roll(state, now, window) -> the state in the window that holds now, or nil where it is as good as none
local function roll(state, now, window)
  if not state or now >= state[1] + 2 * window then
    return nil
  end
  local start, previous, current, turn, birth = unpack(state)
  if now >= start + window then
    return current > 0 and { start + window, current, 0, turn + 1, birth } or nil
  end
  return start - now > window and { now, previous, current, turn, birth } or state
end

-- wait_for(previous, current, cost, rest, limit, window) -> microseconds until cost fits, -1: none helps
local function wait_for(previous, current, cost, rest, limit, window)
  local room = limit - current - cost
  if room >= 0 then
    return rest - divide(window, room, previous)
  end
  if cost > limit then
    return -1
  end
  return rest + window - divide(window, limit - cost, current)
end

function sliding_window.take(state, now, cost, birth, limit, window)
  local rolled = roll(state, now, window)
  local start, previous, current, turn = now, 0, 0, 0
  if rolled then
    start, previous, current, turn, birth = unpack(rolled)
  end
  local rest = start + window - now
  local used = current + divide_up(previous, math.min(rest, window), window)
  if cost > 0 and cost <= limit - used then
    local after = { start, previous, current + cost, turn, birth }
    local expires = start + 2 * window
    return true, after, limit - used - cost, 0, rest, 0, birth .. ":" .. whole(turn), expires
  end
  local wait = used + cost <= limit and 0 or wait_for(previous, current, cost, rest, limit, window)
  local reset = rolled and rest or 0
  local expires = start + (current > 0 and 2 * window or window)
  return wait == 0, redated(state, rolled, 1), math.max(0, limit - used), wait, reset, 0, "", expires
end

function sliding_window.give_back(state, now, cost, token, limit, window)
  local start, previous, current, turn, birth = unpack(state)
  if now >= start + 2 * window then
    return nil
  end
  start = anchor(start, now, window)
  if token == birth .. ":" .. whole(turn) then
    return { start, previous, math.max(0, current - cost), turn, birth }
  end
  if token == birth .. ":" .. whole(turn - 1) and now < start + window then
    return { start, math.max(0, previous - cost), current, turn, birth }
  end
  return nil
end

rules["sliding-window"] = sliding_window
