-- The rule of SlidingWindow; sliding_window.py is its other half.
--
-- State: { start, previous, current, birth }, kept under the tag "s". Sets no expiry: it says when the key
-- may go.
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
sliding_window.read, sliding_window.write = packing("s", 3)

-- roll(state, now, window) -> the state in the window that holds now, or nil where it is as good as none
local function roll(state, now, window)
  if not state or now >= state[1] + 2 * window then
    return nil
  end
  local start, previous, current, birth = state[1], state[2], state[3], state[4]
  if now >= start + window then
    return current > 0 and { start + window, current, 0, birth } or nil
  end
  if start - now > window then
    return { now, previous, current, birth }
  end
  return state
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
  return rest + math.max(0, window - divide(window, limit - cost, current))
end

function sliding_window.take(state, now, cost, birth, limit, window)
  local rolled = roll(state, now, window)
  local start, previous, current = now, 0, 0
  if rolled then
    start, previous, current, birth = rolled[1], rolled[2], rolled[3], rolled[4]
  end
  local redated = state and start < state[1]
  local elapsed = math.max(0, now - start)
  local used = current + divide_up(previous, window - elapsed, window)
  local allowed = used + cost <= limit
  local charged = allowed and cost > 0
  local rest = start + window - now
  local wait = allowed and 0 or wait_for(previous, current, cost, rest, limit, window)
  if charged then
    current, used = current + cost, used + cost
  end
  return allowed,
    (charged or redated) and { start, previous, current, birth } or nil,
    math.max(0, limit - used),
    wait,
    (charged or rolled) and rest or 0,
    0,
    charged and birth .. ":" .. whole(start) or "",
    start + 2 * window
end

function sliding_window.give_back(state, now, cost, token, limit, window)
  local start, previous, current, birth = state[1], state[2], state[3], state[4]
  if now >= start + 2 * window then
    return nil
  end
  if token == birth .. ":" .. whole(start) then
    return { start, previous, math.max(0, current - cost), birth }
  end
  if token == birth .. ":" .. whole(start - window) then
    return { start, math.max(0, previous - cost), current, birth }
  end
  return nil
end

rules["sliding-window"] = sliding_window
