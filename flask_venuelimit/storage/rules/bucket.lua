-- What TokenBucket and LeakyBucket have in common; bucket.py is its other half.
--
-- State: { used, unit, at, birth }: at the time at, in microseconds, used parts were missing from a full bucket,
-- or queued in a leaky one, a token or a turn being unit parts. Sets no expiry.
--
-- drain(state, now, quota, unit, refill)
--   returns  the state at now, in parts of unit, or nil where the bucket is full, or the queue empty
--
-- undo(state, now, cost, token, quota, unit, refill)
--   returns  the state without a charge of cost, or nil where nothing changes: it was full, or empty, since
--
-- bucket(tag)
--   returns  fetch, read, write for such a state, kept as text under the tag

local MOST = 2 ^ 53 - 1 -- parts; more cannot be counted one by one

-- bucket(tag) -> fetch, read, write
local function bucket(tag)
  local fetch, read, write = packing(tag, 3)
  local function read_sound(text)
    local state = read(text)
    -- parts of no size, or of one that cannot be divided by, are no state
    if state and (state[2] < 1 or state[2] > SAFE / 2) then
      return nil
    end
    return state
  end
  return fetch, read_sound, write
end

-- drain(state, now, quota, unit, refill) -> the state at now, in parts of unit, or nil where nothing is used
local function drain(state, now, quota, unit, refill)
  if not state then
    return nil
  end
  local used, old, at, birth = unpack(state)
  if old ~= unit then
    used = math.min(MOST, divide_up(used, unit, old))
  end
  if at - now > divide_up(quota, unit, refill) then
    at = now
  end
  if now > at then
    -- the product is only formed where it is small
    local gone_in = divide_up(used, 1, refill)
    used = now - at >= gone_in and 0 or used - (now - at) * refill
    at = now
  end
  return used > 0 and { used, unit, at, birth } or nil
end

-- undo(state, now, cost, token, quota, unit, refill) -> the state without a charge, or nil where nothing changes
local function undo(state, now, cost, token, quota, unit, refill)
  local drained = drain(state, now, quota, unit, refill)
  if not drained or token ~= drained[4] then
    return nil
  end
  return { math.max(0, drained[1] - cost * unit), unit, drained[3], drained[4] }
end
