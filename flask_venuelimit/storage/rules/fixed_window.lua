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
fixed_window.read, fixed_window.write = packing("f", 2)

function fixed_window.take(state, now, cost, birth, limit, window)
  local start, count, fresh, redated = now, 0, true, false
  if state and now < state[1] + window then
    start, count, birth = state[1], state[2], state[3]
    fresh = false
    if start - now > window then
      start, redated = now, true
    end
  end
  local allowed = count + cost <= limit
  local charged = allowed and cost > 0
  if charged then
    count = count + cost
  end
  local rest = start + window - now
  local wait = 0
  if not allowed then
    wait = cost <= limit and rest or -1
  end
  return allowed,
    (charged or redated) and { start, count, birth } or nil,
    math.max(0, limit - count),
    wait,
    (charged or not fresh) and rest or 0,
    0,
    charged and birth or "",
    start + window
end

function fixed_window.give_back(state, now, cost, token, limit, window)
  local start, count, birth = state[1], state[2], state[3]
  if token ~= birth or now >= start + window then
    return nil
  end
  return { start, math.max(0, count - cost), birth }
end

rules["fixed-window"] = fixed_window
