-- What every rule leans on, and where it registers: rules[kind] = { take, give_back, fetch, read, write, numbers },
-- and renew where its charges are held.
--
--   take(state, now, cost, birth, numbers...) -> allowed, state, remaining, wait, reset, delay, token, expires
--   give_back(state, now, cost, token, numbers...) -> state, or nil where nothing changes
--   renew(state, now, token, numbers...) -> state, or nil where nothing changes
--   fetch(key) -> what is kept, or as much of it as is read ahead: text, false, or a table with an error
--   read(text, key) -> state, or nil where the text is no state of this rule
--   write(key, state, lifetime, quota): keeps a state for so many milliseconds, or for as long as the key has left
--   numbers: how many numbers the policy gives; the first is its quota
--
-- Lua counts in doubles: whole numbers are exact up to 2^53. Rules read and write in fetch, read and write only,
-- and say when a key may go; who calls write sets the expiry.

local rules = {}

local SAFE = 2 ^ 52 -- a product below this divides exactly, remainder and all

-- whole(number) -> text without exponent or fraction
local function whole(number)
  return string.format("%.0f", number)
end

-- set(key, text, lifetime) -> nothing; keeps text for so many milliseconds, or for as long as the key has left
local function set(key, text, lifetime)
  if lifetime then
    redis.call("SET", key, text, "PX", whole(lifetime))
  else
    redis.call("SET", key, text, "KEEPTTL")
  end
end

-- divide(a, b, c) -> floor(a * b / c), and what is left over: long division where a * b is too large.
-- b and c at most 2^52 / 2, all at least 0, c at least 1.
local function divide(a, b, c)
  if a * b < SAFE then
    local rest = (a * b) % c
    return (a * b - rest) / c, rest
  end
  local base = math.max(2, math.floor(SAFE / 2 / math.max(b, c)))
  local digits = {}
  while a > 0 do
    local digit = a % base
    digits[#digits + 1] = digit
    a = (a - digit) / base
  end
  local result, rest = 0, 0
  for i = #digits, 1, -1 do
    local part = rest * base + digits[i] * b
    rest = part % c
    result = result * base + (part - rest) / c
  end
  return result, rest
end

-- divide_up(a, b, c) -> ceil(a * b / c)
local function divide_up(a, b, c)
  local result, rest = divide(a, b, c)
  return rest > 0 and result + 1 or result
end

-- packing(tag, count) -> fetch, read, write for a state of count whole numbers and a birth, kept as text
local function packing(tag, count)
  local pattern = "^" .. tag .. string.rep(" (%-?%d+)", count) .. " (%S+)$"
  local function fetch(key)
    return redis.pcall("GET", key)
  end
  local function read(text)
    local state = { string.match(text, pattern) }
    if #state == 0 then
      return nil
    end
    for i = 1, count do
      state[i] = tonumber(state[i])
    end
    return state
  end
  local function write(key, state, lifetime)
    local parts = { tag }
    for i = 1, count do
      parts[i + 1] = whole(state[i])
    end
    parts[count + 2] = state[count + 1]
    set(key, table.concat(parts, " "), lifetime)
  end
  return fetch, read, write
end

-- redated(state, rolled, field) -> the rolled state if its time, the field, lies before the kept one's, which
-- only a clock far back does; else nil. It is written even where the hit is refused, or the wait would begin
-- anew at each hit.
local function redated(state, rolled, field)
  if not state or not rolled or rolled[field] >= state[field] then
    return nil
  end
  return rolled
end
