-- Decides, peeks, refunds or renews any number of charges in one step, on one clock.
--
-- KEYS  one a cell, in the order of the cells
-- ARGV  mode    "decide", "peek", "refund" or "renew"
--       given   the time in microseconds, or "" for the server's own clock
--       birth   names the lives that start in this call
--       count   how many charges follow; each of them:
--         cells, cost, binding (1 or 0), stays (1 or 0); then each cell:
--           kind, span (microseconds), the policy's numbers; to refund or renew, then the token
--
-- Returns text, a line a charge, its fields parted by tabs: "error" and what is wrong with the charge's own
-- keys, or charged (1 or 0) and then each cell, parted by spaces:
--   allowed (1 or 0), remaining (hits), wait (microseconds, -1: none helps), reset (microseconds),
--   delay (microseconds), token ("-": none)
-- A refund and a renewal return "".
--
-- Sets the expiry: with every write, at the time the rule gives, rounded up to a millisecond. A key found
-- without one is given one. A peek writes nothing.

local mode, given, birth = ARGV[1], ARGV[2], ARGV[3]
local cursor = 3
local keys_read = 0
local undoes = mode == "refund" or mode == "renew"

-- a clock of the caller's own may lag behind the server's, whose expiry must not come first
local grace = given == "" and 0 or 3600000
local now
if given == "" then
  local time = redis.call("TIME")
  now = tonumber(time[1]) * 1000000 + tonumber(time[2])
else
  now = tonumber(given)
end

local function argument()
  cursor = cursor + 1
  return ARGV[cursor]
end

local function number()
  return tonumber(argument())
end

-- microseconds as Redis takes them: milliseconds, rounded up
local function milliseconds(length)
  return math.max(1, math.ceil(length / 1000))
end

-- milliseconds from now to a point in time
local function lifetime(expires)
  return milliseconds(expires - now) + grace
end

local function read_cell()
  keys_read = keys_read + 1
  local cell = { key = KEYS[keys_read], rule = rules[argument()], span = number(), numbers = {} }
  for i = 1, cell.rule.numbers do
    cell.numbers[i] = number()
  end
  cell.token = undoes and argument() or ""
  local text = cell.rule.fetch(cell.key)
  if type(text) == "table" then
    if string.sub(text.err, 1, 9) ~= "WRONGTYPE" then
      error(text.err, 0)
    end
    cell.err, cell.found = text.err, true
  elseif text then
    cell.state, cell.found = cell.rule.read(text, cell.key), true
  end
  return cell
end

local function take(cell, cost)
  cell.allowed, cell.after, cell.remaining, cell.wait, cell.reset, cell.delay, cell.token, cell.expires =
    cell.rule.take(cell.state, now, cost, birth, unpack(cell.numbers))
end

local function keep(cell)
  cell.rule.write(cell.key, cell.after, lifetime(cell.expires), cell.numbers[1])
end

-- see to it that a key that is not written goes all the same
local function let_go(cell)
  if cell.found and redis.call("PTTL", cell.key) == -1 then
    -- what is no state of ours is of no use, and only in the way
    local left = cell.state and lifetime(cell.expires) or milliseconds(cell.span)
    redis.call("PEXPIRE", cell.key, whole(left))
  end
end

local function read_charge()
  local charge = { cells = {}, fits = true }
  local count = number()
  charge.cost, charge.binding, charge.stays = number(), argument() == "1", argument() == "1"
  for i = 1, count do
    local cell = read_cell()
    charge.cells[i] = cell
    charge.err = charge.err or cell.err
    if not cell.err and not undoes then
      take(cell, charge.cost)
      charge.fits = charge.fits and cell.allowed
    end
  end
  return charge
end

-- the verdict on the cost stays; what is left and what is written are those of a mere look
local function look(cell)
  if cell.allowed then
    local wait, delay = cell.wait, cell.delay
    take(cell, 0)
    cell.allowed, cell.wait, cell.delay = true, wait, delay
  end
end

local function settle(charge, charged)
  local fields = { charged and "1" or "0" }
  for i, cell in ipairs(charge.cells) do
    if not charged then
      look(cell)
    end
    if mode == "decide" then
      if cell.after then
        keep(cell)
      else
        let_go(cell)
      end
    end
    local token = cell.token ~= "" and cell.token or "-"
    fields[i + 1] = table.concat({
      cell.allowed and "1" or "0", whole(cell.remaining), whole(cell.wait), whole(cell.reset),
      whole(cell.delay), token,
    }, " ")
  end
  return table.concat(fields, "\t")
end

local function fail(charge)
  for _, cell in ipairs(charge.cells) do
    if mode == "decide" then
      let_go(cell)
    end
  end
  return "error\t" .. charge.err
end

local function answer(charges)
  local passes = mode == "decide"
  for _, charge in ipairs(charges) do
    passes = passes and (charge.fits or charge.err ~= nil or not charge.binding)
  end
  local lines = {}
  for i, charge in ipairs(charges) do
    local charged = mode == "decide" and charge.fits and (passes or charge.stays)
    lines[i] = charge.err and fail(charge) or settle(charge, charged)
  end
  return table.concat(lines, "\n")
end

local function undo_or_renew(cell, cost)
  if not cell.state then
    return let_go(cell)
  end
  local renews = mode == "renew"
  local after
  if renews then
    after = cell.rule.renew(cell.state, now, cell.token, unpack(cell.numbers))
  else
    after = cell.rule.give_back(cell.state, now, cost, cell.token, unpack(cell.numbers))
  end
  cell.state = after or cell.state
  take(cell, 0)
  if after then
    cell.rule.write(cell.key, after, renews and lifetime(cell.expires) or nil, cell.numbers[1])
  end
  let_go(cell)
end

local charges = {}
for i = 1, number() do
  charges[i] = read_charge()
  if undoes then
    -- one after the other: two of them may have charged the same key
    for _, cell in ipairs(charges[i].cells) do
      undo_or_renew(cell, charges[i].cost)
    end
  end
end
return undoes and "" or answer(charges)
