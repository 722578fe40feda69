-- A log: what SlidingLog and Concurrency keep of each charge; log.py is its other half.
--
-- Kept as one string of bytes: a tag; five doubles: room, first, count, base, serial; birth and a zero byte; then
-- a ring of room entries, the oldest at first. An entry is three doubles: its time in microseconds, the running
-- sum of all costs with its own, its serial number. A hit reads the head and the few entries it needs, and writes
-- the head and one entry. Sets no expiry but the one that write is given.
--
-- State: the head's fields, and what was not written yet: from the entry numbered from on, counted from the oldest
-- as 0, the entries are those in bytes. size is the head's length, text what was read ahead of the string at key,
-- seen the entries that were looked at already.
--
-- enter(log, now, cost, birth, limit, window)
--   returns  what a rule's take does
--
-- leave(log, now, token, window)
--   returns  the log without the entry that token names, or nil where nothing changes
--
-- logging(tag)
--   returns  fetch, read, write for such a state

local HEAD, ENTRY = "<ddddds", "<ddd"
local WIDTH = 24 -- bytes of an entry
local HEAD_ENDS = 42 -- the first byte that can end a head
local AHEAD = 4096 -- bytes read at once: all of a log of up to 160 entries
local FEWEST = 8 -- entries a ring has room for at first
local CHUNK = 1024 -- entries searched at once for a serial number
local MOST = 2 ^ 52 -- running sums begin anew before they outgrow what doubles count exactly

-- with(log, changes) -> a log that differs in these fields, and in its entries
local function with(log, changes)
  local copy = {}
  for name, value in pairs(log) do
    copy[name] = value
  end
  for name, value in pairs(changes) do
    copy[name] = value
  end
  copy.seen = {}
  return copy
end

-- begun(birth) -> a log that holds nothing yet
local function begun(birth)
  return { birth = birth, serial = 0, base = 0, first = 0, count = 0, room = 0, from = 0, bytes = "", seen = {} }
end

-- kept_bytes(log, from, to) -> the entries from one number up to another, as they are kept
local function kept_bytes(log, from, to)
  if from >= to then
    return ""
  end
  local slot = (log.first + from) % log.room
  local upto = math.min(to, from + log.room - slot)
  local start, stop = log.size + slot * WIDTH, log.size + (slot + upto - from) * WIDTH
  local part = stop <= #log.text and string.sub(log.text, start + 1, stop)
    or redis.call("GETRANGE", log.key, whole(start), whole(stop - 1))
  return part .. kept_bytes(log, upto, to)
end

-- entries(log, from, to) -> the entries from one number up to another, as bytes
local function entries(log, from, to)
  local kept = kept_bytes(log, from, math.min(to, log.from))
  return kept .. string.sub(log.bytes, math.max(0, from - log.from) * WIDTH + 1, math.max(0, to - log.from) * WIDTH)
end

-- entry(log, index) -> time, sum and serial of an entry
local function entry(log, index)
  log.seen[index] = log.seen[index] or { struct.unpack(ENTRY, entries(log, index, index + 1)) }
  return unpack(log.seen[index], 1, 3)
end

-- newest(log) -> the time of the last entry
local function newest(log)
  return (entry(log, log.count - 1))
end

-- sum_before(log, index) -> the running sum before an entry; behind the last one, the sum of all
local function sum_before(log, index)
  if index == 0 then
    return log.base
  end
  return (select(2, entry(log, index - 1)))
end

-- first_over(log, field, value) -> the number of the first entry whose field, 1 or 2, is over value, or count
local function first_over(log, field, value)
  local low, high = 0, log.count
  while low < high do
    -- most often it is the first one
    local middle = low == 0 and high == log.count and 0 or math.floor((low + high) / 2)
    if select(field, entry(log, middle)) > value then
      high = middle
    else
      low = middle + 1
    end
  end
  return low
end

-- outside(log, edge) -> how many entries, from the first on, are dated edge or earlier
local function outside(log, edge)
  return first_over(log, 1, edge)
end

-- wait_for(log, total, now, window) -> microseconds until the entry with which the sum came to total goes
local function wait_for(log, total, now, window)
  return (entry(log, first_over(log, 2, total - 1))) + window - now
end

-- shifted(bytes, back, less) -> entries whose times and running sums are less by so much
local function shifted(bytes, back, less)
  local parts = {}
  for at = 1, #bytes, WIDTH do
    local time, sum, serial = struct.unpack(ENTRY, bytes, at)
    parts[#parts + 1] = struct.pack(ENTRY, time - back, sum - less, serial)
  end
  return table.concat(parts)
end

-- dated(log, now, window) -> the log at now, its times moved back to meet a clock far back; nil: nothing counts
local function dated(log, now, window)
  if not log or log.count == 0 or now >= newest(log) + window then
    return nil
  end
  local ahead = newest(log) - now
  if ahead <= window then
    return log
  end
  return with(log, { from = 0, bytes = shifted(entries(log, 0, log.count), ahead, 0) })
end

-- token_of(log) -> what names the log's next entry
local function token_of(log)
  return log.birth .. ":" .. whole(log.serial)
end

-- find(log, now, token, window) -> the number of the entry that token names, or nil if it counts no longer
local function find(log, now, token, window)
  local birth, serial = string.match(token, "^(.*):(%d+)$")
  if birth ~= log.birth then
    return nil
  end
  local needle = struct.pack("<d", tonumber(serial))
  local gone = outside(log, math.max(now, newest(log)) - window)
  local stop = log.count
  while stop > gone do
    local start = math.max(gone, stop - CHUNK)
    local bytes, at = entries(log, start, stop), 0
    repeat
      at = string.find(bytes, needle, at + 1, true)
    until not at or at % WIDTH == 17
    if at then
      return start + (at - 17) / WIDTH
    end
    stop = start
  end
  return nil
end

-- rebased(log) -> the log, its running sum beginning at 0 again
local function rebased(log)
  return with(log, { base = 0, from = 0, bytes = shifted(entries(log, 0, log.count), 0, log.base) })
end

-- appended(log, gone, time, cost, serial) -> the log with an entry at the end, the first gone ones left behind
local function appended(log, gone, time, cost, serial)
  if sum_before(log, log.count) + cost > MOST then
    log = rebased(log)
  end
  local new = struct.pack(ENTRY, time, sum_before(log, log.count) + cost, serial)
  return with(log, {
    serial = math.max(log.serial, serial + 1),
    base = sum_before(log, gone),
    first = log.room > 0 and (log.first + gone) % log.room or 0,
    count = log.count - gone + 1,
    from = math.max(0, log.from - gone),
    bytes = string.sub(log.bytes, math.max(0, gone - log.from) * WIDTH + 1) .. new,
  })
end

-- removed(log, index) -> the log without an entry, and without its cost in the running sums behind it
local function removed(log, index)
  local cost = sum_before(log, index + 1) - sum_before(log, index)
  local behind = shifted(entries(log, index + 1, log.count), 0, cost)
  local from = math.min(index, log.from)
  return with(log, { count = log.count - 1, from = from, bytes = entries(log, from, index) .. behind })
end

-- enter(log, now, cost, birth, limit, window) -> what a rule's take does
local function enter(log, now, cost, birth, limit, window)
  local kept = dated(log, now, window)
  local live = kept or begun(birth)
  local at = kept and math.max(now, newest(kept)) or now
  local gone = outside(live, at - window)
  local before = sum_before(live, gone)
  local used = sum_before(live, live.count) - before
  if cost > 0 and cost <= limit - used then
    local after = appended(live, gone, at, cost, live.serial)
    local left = at + window - now
    return true, after, limit - used - cost, 0, left, 0, token_of(live), at + window
  end
  local waits = used + cost > limit and cost <= limit
  local wait = waits and wait_for(live, before + used + cost - limit, now, window) or 0
  local expires = kept and newest(kept) + window or now
  local verdict = cost > limit and -1 or wait
  local moved = kept ~= log and kept or nil
  return verdict == 0, moved, math.max(0, limit - used), verdict, expires - now, 0, "", expires
end

-- leave(log, now, token, window) -> the log without the entry that token names, or nil where nothing changes
local function leave(log, now, token, window)
  local kept = dated(log, now, window)
  local index = kept and find(kept, now, token, window)
  return index and removed(kept, index) or nil
end

-- head(log, room, first) -> the bytes ahead of the entries
local function head(log, room, first)
  return struct.pack(HEAD, room, first, log.count, log.base, log.serial, log.birth)
end

-- rewrite(tag, key, log, lifetime, quota) -> nothing; keeps a log as a new string, with room to grow up to quota
local function rewrite(tag, key, log, lifetime, quota)
  local room = math.max(log.count, math.min(quota, math.max(FEWEST, 2 * log.count)))
  set(key, tag .. head(log, room, 0) .. entries(log, 0, log.count), lifetime)
end

-- overwrite(tag, key, log) -> nothing; writes the head and what is new into the string that is there
local function overwrite(tag, key, log)
  local slot = (log.first + log.from) % log.room
  local upto = (log.room - slot) * WIDTH
  local function put(start, bytes)
    if bytes ~= "" then
      redis.call("SETRANGE", key, whole(start), bytes)
    end
  end
  put(log.size + slot * WIDTH, string.sub(log.bytes, 1, upto))
  put(log.size, string.sub(log.bytes, upto + 1))
  put(0, tag .. head(log, log.room, log.first))
end

-- sound(log) -> whether the head's numbers are such as write keeps, and the string is long enough for them
local function sound(log)
  local first, count, room = log.first, log.count, log.room
  if not (first >= 0 and first < room and count >= 1 and count <= room and (first + count + room) % 1 == 0) then
    return false
  end
  local length = #log.text < AHEAD and #log.text or redis.call("STRLEN", log.key)
  return length >= log.size + math.min(first + count, room) * WIDTH
end

-- logging(tag) -> fetch, read, write
local function logging(tag)
  local function fetch(key)
    return redis.pcall("GETRANGE", key, 0, AHEAD - 1)
  end
  local function read(text, key)
    if string.sub(text, 1, 1) ~= tag or not string.find(text, "\0", HEAD_ENDS, true) then
      return nil
    end
    local room, first, count, base, serial, birth, ends = struct.unpack(HEAD, text, 2)
    local log = { key = key, text = text, size = ends - 1, room = room, first = first, count = count }
    return sound(log) and with(log, { base = base, serial = serial, birth = birth, from = count, bytes = "" }) or nil
  end
  local function write(key, log, lifetime, quota)
    if log.count == 0 then
      redis.call("DEL", key)
    elseif log.count > log.room or lifetime and log.room > math.max(quota, log.count) then
      rewrite(tag, key, log, lifetime, quota)
    else
      overwrite(tag, key, log)
      if lifetime then
        redis.call("PEXPIRE", key, whole(lifetime))
      end
    end
  end
  return fetch, read, write
end
